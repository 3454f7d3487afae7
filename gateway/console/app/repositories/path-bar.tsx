/** The path of a directory or file, each step a link. */
import { Link } from "../lib/router.tsx";
import { encodePath, type RepoPlace } from "./repo-place.ts";

interface PathBarProps {
  place: RepoPlace;
  reference: string | undefined;
  path: string;
}

export function PathBar({ place, reference, path }: PathBarProps) {
  if (path === "") return null;
  const steps = path.split("/");
  return (
    <nav class="path-bar" aria-label="Path">
      <Link to={place.page("", { ref: reference })}>{place.name}</Link>
      {steps.map((step, index) => (
        <span key={index}>
          <span class="quiet"> / </span>
          {index === steps.length - 1 ? (
            <span aria-current="page">{step}</span>
          ) : (
            <Link
              to={place.page(`tree/${encodePath(steps.slice(0, index + 1).join("/"))}`, {
                ref: reference,
              })}
            >
              {step}
            </Link>
          )}
        </span>
      ))}
    </nav>
  );
}
