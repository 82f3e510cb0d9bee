import { render } from "preact";
import { App } from "./app/app.tsx";
import { applyTheme } from "./app/theme.ts";
import { correctLanguage } from "./lib/locale.ts";
import "./style/base.css";
import "./style/parts.css";

// Before any page is loaded: charts read the language when they are.
correctLanguage(navigator);
applyTheme();
render(<App />, document.body);
