import { render } from "preact";
import { App } from "./app.tsx";
import { correctLanguage } from "./locale.ts";
import { applyTheme } from "./theme.ts";
import "./style/base.css";
import "./style/parts.css";

// Before any page is loaded: charts read the language when they are.
correctLanguage(navigator);
applyTheme();
render(<App />, document.body);
