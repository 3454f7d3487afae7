/** Starts the console in a browser. */
import "./style.css";
import "./parts/content.css";
import { render } from "preact";
import { Console } from "./frame/console.tsx";

const place = document.getElementById("console");
if (place) {
  place.textContent = "";
  render(<Console />, place);
}
