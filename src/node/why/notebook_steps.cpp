// SPDX-License-Identifier: Apache-2.0
#include "node/why/notebook_steps.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;

constexpr std::size_t kIdShown = 8;

std::string_view describe_gpu(GpuState gpu) {
  switch (gpu) {
    case GpuState::Works: return "the GPU works";
    case GpuState::Unhealthy: return "the GPU is not usable";
    case GpuState::Unknown: break;
  }
  return "no fault of the GPU is known";
}

std::string kernel_name(const JupyterAnswer& answer) {
  return fmt::format("kernel {}", answer.kernel.substr(0, kIdShown));
}

// How far it went, for a reader who knows Jupyter only as a page.
std::string describe_answer(const JupyterAnswer& answer) {
  const auto reason = answer.error.empty() ? fmt::format("HTTP {}", answer.status) : answer.error;
  switch (answer.stage) {
    case JupyterStage::Unreachable: return fmt::format("{}: no answer: {}", answer.where, reason);
    case JupyterStage::NotJupyter:
      return fmt::format("{}: not Jupyter: /api answers HTTP {}", answer.where, answer.status);
    case JupyterStage::Denied:
      return fmt::format("{}: /api/kernels answers HTTP {}", answer.where, answer.status);
    case JupyterStage::NoKernel:
      return fmt::format("{}: Jupyter {}, no kernel{}", answer.where, answer.version,
                         answer.about.empty() ? "" : fmt::format(" ({})", answer.about));
    case JupyterStage::Refused:
      return fmt::format("{}: WebSocket refused: {}", answer.where, reason);
    case JupyterStage::Lossy:
      return fmt::format("{}: WebSocket opened, {} of {} answers came in {} s{}", answer.where,
                         answer.answers, answer.requests, kKernelTimeout.count(),
                         answer.error.empty() ? "" : fmt::format(": {}", answer.error));
    case JupyterStage::Answered: break;
  }
  return fmt::format("{}: {} ({}): {} of {} answers, the first after {} ms", answer.where,
                     kernel_name(answer), answer.about, answer.answers, answer.requests,
                     answer.first.count());
}

std::string logs_command(const NotebookView& view) {
  return fmt::format("kubectl logs -n {} {}", view.name_space, view.pod);
}

Step silent_kernel(const NotebookView& view, GpuState gpu, Step step) {
  step.verdict = StepStatus::Failed;
  step.cause = fmt::format(
      "{} does not answer in its own pod either: it hangs or is dead, {}, and the connection "
      "through the URL is not at fault",
      kernel_name(view.direct), describe_gpu(gpu));
  step.remedy = fmt::format("restart it in the notebook (Kernel, Restart); {}", logs_command(view));
  return step;
}

Step no_kernel(const NotebookView& view, GpuState gpu, Step step) {
  step.verdict = StepStatus::Warning;
  step.cause = fmt::format(
      "no kernel runs: the last one died, or no notebook is open; {}, and the connection through "
      "the URL is not at fault",
      describe_gpu(gpu));
  step.remedy = fmt::format("{}, then open the notebook and run a cell", logs_command(view));
  return step;
}

Step unreachable_server(const NotebookView& view, Step step) {
  if (!view.on_node) {
    step.verdict = StepStatus::Unknown;
    step.read += fmt::format("; run the same command as root on {}", view.node);
    return step;
  }
  step.verdict = StepStatus::Failed;
  step.cause =
      "Jupyter does not answer in its own pod, so no proxy is at fault: it has ended, it hangs, or "
      "it listens at a port that the pod does not declare";
  step.remedy =
      fmt::format("{}; ports: [{{containerPort: PORT}}] in the manifest", logs_command(view));
  return step;
}

Step kernel_step(const NotebookView& view, GpuState gpu) {
  Step step{.id = "notebook.kernel",
            .what = "The notebook's kernel answers",
            .read = describe_answer(view.direct)};
  switch (view.direct.stage) {
    case JupyterStage::Answered: break;
    case JupyterStage::Lossy: return silent_kernel(view, gpu, std::move(step));
    case JupyterStage::NoKernel: return no_kernel(view, gpu, std::move(step));
    case JupyterStage::Unreachable: return unreachable_server(view, std::move(step));
    case JupyterStage::NotJupyter: step.verdict = StepStatus::Unknown; break;
    case JupyterStage::Denied:
      step.verdict = StepStatus::Unknown;
      step.read += "; it needs its token: --token-file FILE";
      break;
    case JupyterStage::Refused:
      step.verdict = StepStatus::Failed;
      step.cause = "Jupyter refuses the WebSocket of its kernel in its own pod";
      step.remedy = logs_command(view);
      break;
  }
  return step;
}

struct Fault {
  std::string cause;
  std::string remedy;
};

Fault refused_upgrade(const JupyterAnswer& by_url) {
  if (by_url.status == 403)
    return {
        "refuses its WebSocket: HTTP 403, as Jupyter answers if the proxy changes the "
        "browser's Host",
        "nginx: proxy_set_header Host $http_host; or start Jupyter with "
        "--ServerApp.allow_origin=ORIGIN"};
  return {fmt::format("does not carry WebSockets: its answer to the upgrade is {}",
                      by_url.error.empty() ? fmt::format("HTTP {}", by_url.status) : by_url.error),
          "nginx: proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header "
          "Connection \"upgrade\"; Ingress: annotation nginx.org/websocket-services: SERVICE "
          "(NGINX), nginx.ingress.kubernetes.io/proxy-http-version: \"1.1\" (ingress-nginx)"};
}

Fault lost_frames(const NotebookView& view) {
  return {fmt::format("loses frames: its WebSocket opened, and {} of {} answers came",
                      view.by_url.answers, view.by_url.requests),
          fmt::format("kubectl port-forward -n {} pod/{} {} leads past the proxy; in the proxy: "
                      "nginx: proxy_buffering off; proxy_read_timeout 3600s; ingress-nginx: "
                      "annotations nginx.ingress.kubernetes.io/proxy-read-timeout and "
                      "proxy-send-timeout: \"3600\"; HAProxy: timeout tunnel 1h",
                      view.name_space, view.pod, view.direct.port)};
}

Fault fault_of(const NotebookView& view) {
  const auto& by_url = view.by_url;
  switch (by_url.stage) {
    case JupyterStage::Unreachable:
      return {"does not answer: " + by_url.error,
              "check the proxy, then kubectl get service,ingress,endpointslices"};
    case JupyterStage::NotJupyter:
      return {fmt::format("does not lead to Jupyter: /api answers HTTP {}", by_url.status),
              "check the proxy's address and path, then kubectl get service,ingress"};
    case JupyterStage::Denied:
      return {fmt::format("wants a login: /api/kernels answers HTTP {}", by_url.status),
              "--token-file FILE; or let the proxy pass the header Authorization"};
    case JupyterStage::NoKernel:
      return {"leads to another Jupyter, which does not run this kernel",
              "the Service must select this pod alone: kubectl get endpointslices"};
    case JupyterStage::Refused: return refused_upgrade(by_url);
    case JupyterStage::Lossy: return lost_frames(view);
    case JupyterStage::Answered: break;
  }
  return {};
}

// The pod's own answer, with which the answer of the connection is compared.
enum class PodSide : std::uint8_t { Answers, Silent, Unseen };
PodSide pod_side(const NotebookView& view) {
  const auto stage = view.direct.stage;
  if (stage == JupyterStage::Answered) return PodSide::Answers;
  if (stage == JupyterStage::Unreachable && !view.on_node) return PodSide::Unseen;
  // Another server than Jupyter, such as gantry-notebook: whether it answers at all can be
  // compared.
  const bool other = stage == JupyterStage::NotJupyter;
  return other && view.by_url.stage == JupyterStage::Unreachable ? PodSide::Answers
                                                                 : PodSide::Silent;
}

StepStatus verdict_on(const NotebookView& view) {
  const auto stage = view.by_url.stage;
  if (stage == JupyterStage::Answered) return StepStatus::Ok;
  switch (pod_side(view)) {
    case PodSide::Answers:  // a browser may have the login that we have not
      return stage == JupyterStage::Denied ? StepStatus::Warning : StepStatus::Failed;
    case PodSide::Unseen:
      return stage == JupyterStage::Refused || stage == JupyterStage::Lossy ? StepStatus::Warning
                                                                            : StepStatus::Unknown;
    case PodSide::Silent: break;
  }
  return StepStatus::Unknown;
}

std::string pod_says(const NotebookView& view) {
  if (view.direct.stage == JupyterStage::Answered)
    return fmt::format("{} answered in its pod", kernel_name(view.direct));
  return pod_side(view) == PodSide::Unseen
             ? "the kernel cannot be asked from here"
             : fmt::format("the pod answers at {}", view.direct.where);
}

Step url_step(const NotebookView& view, GpuState gpu) {
  Step step{.id = "notebook.url",
            .what = "The browser's connection to it",
            .verdict = verdict_on(view),
            .read = describe_answer(view.by_url)};
  if (step.verdict != StepStatus::Failed && step.verdict != StepStatus::Warning) return step;
  auto fault = fault_of(view);
  step.cause = fmt::format("{} and {}, but the connection through {} {}", describe_gpu(gpu),
                           pod_says(view), view.by_url.where, fault.cause);
  step.remedy = std::move(fault.remedy);
  return step;
}

}  // namespace

std::vector<Step> notebook_steps(const NotebookView& view, GpuState gpu) {
  return {kernel_step(view, gpu), url_step(view, gpu)};
}

}  // namespace gantry::why
