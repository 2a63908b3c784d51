// SPDX-License-Identifier: Apache-2.0
// The page's script with a browser of three functions: what it says when the network, a proxy or the GPU fails.
import fs from "fs";

const page = fs.readFileSync(new URL("page_internal.hpp", import.meta.url), "utf8");
const script = page.split("<script>")[1].split("</script>")[0];
let failed = 0;

// `run` answers /run or throws; `ran` is what the pod has done after it.
async function press({ run, ran, status_from = 0 }) {
  const elements = {};
  const document = { getElementById: id => elements[id] ??= { className: "", textContent: "", disabled: false } };
  let last = null, calls = 0;
  const fetch = async path => {
    if (path === "run") {
      last = ran;
      return run();
    }
    if (++calls > 1 && calls < status_from) throw new Error("cut");
    const gpu = { state: "ok", devices: ["GPU 0"], error: null };
    return { json: async () => ({ gpu, running: false, last, verdict: "the server's verdict" }) };
  };
  new Function("document", "fetch", "setTimeout", script)(document, fetch, setImmediate);
  await elements.run.onclick();
  return { kind: elements.verdict.className, says: elements.verdict.textContent, output: elements.output.textContent };
}

function check(what, got, kind, words, output) {
  const right = got.kind === kind && got.says.includes(words) && got.output === output;
  failed += right ? 0 : 1;
  console.log(`${right ? "ok    " : "FAILED"} ${what}${right ? "" : ` ${JSON.stringify(got)}`}`);
}

const ours = (ok, text) => () => ({ ok, headers: { get: () => "1" }, text: async () => text });
const proxy = () => ({ ok: false, headers: { get: () => null }, text: async () => "Bad Gateway" });
const cut = () => { throw new Error("cut"); };
const passed = { number: 1, result: "passed", output: "six lines" };
const broken = { number: 1, result: "failed", output: "cuInit" };

check("an answer that comes is shown", await press({ run: ours(true, "six lines"), ran: passed }),
  "good", "the server's verdict", "six lines");
check("a fault of the GPU is the GPU's", await press({ run: ours(false, "cuInit"), ran: broken }),
  "gpu", "the server's verdict", "cuInit");
check("an answer counts even if the next question is cut",
  await press({ run: ours(true, "six lines"), ran: passed, status_from: 99 }), "good", "The GPU and the connection work", "six lines");
check("a cut connection is not the GPU's fault, and the result is shown", await press({ run: cut, ran: passed }),
  "connection", "run 1 passed on the GPU", "six lines");
check("a proxy's answer is not ours", await press({ run: proxy, ran: passed }), "connection", "run 1 passed", "six lines");
check("a run that failed behind a cut connection is the GPU's", await press({ run: cut, ran: broken }),
  "gpu", "the server's verdict", "cuInit");
check("a request that got lost on its way ran nothing", await press({ run: cut, ran: null }),
  "connection", "Nothing ran", "");
check("it asks again until the pod can be reached", await press({ run: cut, ran: passed, status_from: 20 }),
  "connection", "run 1 passed on the GPU", "six lines");
check("a pod that cannot be reached says nothing of the GPU", await press({ run: cut, ran: passed, status_from: 999 }),
  "connection", "The state of the GPU is unknown", "");
process.exit(failed ? 1 : 0);
