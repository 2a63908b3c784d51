// SPDX-License-Identifier: Apache-2.0
// The page. Its script requests /run. If no answer comes, it requests /status, because the server
// knows the result of the run.
#pragma once

namespace gantry::workload {

inline constexpr const char* kPage = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>GPU notebook</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em; color: #222 }
pre { background: #f4f4f4; padding: .8em; white-space: pre-wrap; overflow-wrap: anywhere; min-height: 1.5em }
button { font: inherit; padding: .3em 1em }
#verdict { border-left: .3em solid #999; padding-left: .8em; overflow-wrap: anywhere }
#verdict.good { border-color: #2a7d2a }
#verdict.gpu { border-color: #b3261e }
#verdict.connection { border-color: #c77700 }
</style>
</head>
<body>
<h1>GPU notebook</h1>
<h2>GPUs</h2>
<pre id="gpus">{{gpus}}</pre>
<h2>Vector addition</h2>
<p><button id="run">Run on the GPU</button></p>
<pre id="output">{{output}}</pre>
<p id="verdict">{{verdict}}</p>
<h2>GPU or connection?</h2>
<p>The run takes place in the pod, whether or not its answer reaches this page. If no answer comes, the
page reads the result of the run from <a href="status">status</a>. If the run passed there, the GPU works and the
connection was cut by a proxy, a load balancer, or a network that drops packets. If the run failed
there, the text above comes from the driver. If status does not answer either, the state of the GPU is unknown; bypass
the proxy:</p>
<pre>kubectl port-forward pod/tf-notebook 8888
kubectl exec tf-notebook -- gantry-vector-add</pre>
<script>
"use strict";
const at = id => document.getElementById(id);
const pause = ms => new Promise(done => setTimeout(done, ms));
const status = async () => (await fetch("status", { cache: "no-store" })).json();
function say(kind, text) { at("verdict").className = kind; at("verdict").textContent = text; }

async function afterwards(before) {
  for (let i = 0; i < 90; ++i) {
    try {
      const now = await status();
      if (now.last && now.last.number > before) {
        at("output").textContent = now.last.output;
        if (now.last.result === "passed")
          return say("connection", "Dropped connection: run " + now.last.number + " passed on the GPU, but its answer did " +
            "not reach this page. Check the proxy or the network between browser and pod, not the GPU.");
        return say("gpu", now.verdict);
      }
      if (!now.running)
        return say("connection", "Dropped connection: the request did not reach the pod. Nothing ran. State of the GPU: " +
          now.gpu.state + ".");
    } catch (problem) { /* not reachable now; again */ }
    await pause(1000);
  }
  say("connection", "Dropped connection: the pod cannot be reached. The state of the GPU is unknown.");
}

at("run").onclick = async () => {
  at("run").disabled = true;
  at("output").textContent = "";
  say("", "Running ...");
  let before = 0;
  try { const now = await status(); before = now.last ? now.last.number : 0; } catch (problem) { /* seen below */ }
  try {
    const answer = await fetch("run", { cache: "no-store" });
    const text = await answer.text();
    if (!answer.headers.get("X-Gantry-Run")) throw new Error("a proxy's answer");
    at("output").textContent = text;
    say(answer.ok ? "good" : "gpu", answer.ok ? "The GPU and the connection work." : "GPU fault: see above.");
    try {
      const now = await status();
      if (now.gpu.state !== "ok") at("verdict").className = "gpu";
      at("verdict").textContent = now.verdict;
      at("gpus").textContent = now.gpu.error || now.gpu.devices.join("\n");
    } catch (problem) { /* what is said stands */ }
  } catch (problem) {
    say("connection", "No answer came. Reading the result of the run ...");
    await afterwards(before);
  }
  at("run").disabled = false;
};
</script>
</body>
</html>
)";

}  // namespace gantry::workload
