import { render } from "preact";
import { App } from "./app.tsx";
import { applyTheme } from "./theme.ts";
import "./style/base.css";
import "./style/parts.css";

applyTheme();
render(<App />, document.body);
