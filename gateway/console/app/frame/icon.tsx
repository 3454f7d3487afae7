/** The icons of the navigation: lines on a grid of 20. */

const PATHS = {
  home: "M3 9.5 10 4l7 5.5M5 8.5V16h10V8.5M8.5 16v-4h3v4",
  rendering: "M3 4h14v10H3zM7 17h6M10 14v3",
  crawl:
    "M10 3v5M4 16l4-5M16 16l-4-5M10 8a2 2 0 1 0 0 4 2 2 0 0 0 0-4M3 17.5h3M14 17.5h3M8.5 2.5h3",
  repository:
    "M6 3v9M6 12a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M14 3a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M14 8c0 4-8 2-8 4",
  key: "M12.5 3a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M9.5 10.5 3 17M5 15l2 2",
  app: "M3 3h6v6H3zM11 3h6v6h-6zM3 11h6v6H3zM11 14h6M14 11v6",
  webhook:
    "M10 3a3.5 3.5 0 0 1 3 5.2l2 4M7 11l3-5.500M15 11a3 3 0 1 1-2.800 4.200H6.800M6.800 15A3 3 0 1 1 5 11.500",
  account:
    "M10 3a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7M3.500 17c0-3 2.800-4.500 6.500-4.500s6.500 1.500 6.500 4.500",
  request: "M3 5h5M6 10h8M12 15h5M8 5v5M12 10v5",
  operator: "M3 4h14v5H3zM3 11h14v5H3zM6 6.5h1M6 13.500h1M11 6.500h3M11 13.500h3",
  menu: "M3 5h14M3 10h14M3 15h14",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
