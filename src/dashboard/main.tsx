import { render } from "preact";
import { App } from "./app/app.tsx";
import { applyTheme } from "./app/theme.ts";
import { correctLanguage } from "./lib/locale.ts";
import "./style/base.css";
import "./style/forms.css";
import "./style/components.css";
import "./style/labelling.css";

// This must precede the first page: uPlot reads the language when it is imported.
correctLanguage(navigator);
applyTheme();
render(<App />, document.body);
