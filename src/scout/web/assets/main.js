// @ts-check
// The page's entry. Each module adds one thing to the document that the server has written.

import "./actions.js";
import "./composer.js";
import "./find.js";
import "./keys.js";
import "./notify.js";
import "./refresh.js";
import "./talk.js";
import "./slider.js";
import "./tail.js";
import { follow } from "./live.js";
import { localize } from "./times.js";

localize();
void follow();
