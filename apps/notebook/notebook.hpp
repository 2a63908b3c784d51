// SPDX-License-Identifier: Apache-2.0
// The page's state: the GPUs, the last run, and whether its client was still connected when it
// ended. The last value tells a dropped connection from a GPU fault.
#pragma once

#include "base/log/log.hpp"
#include "net/http/server.hpp"
#include "notebook/jobs.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gantry::workload {

struct NotebookOptions {
  std::vector<std::string> run;   // the command behind /run
  std::vector<std::string> look;  // prints a line about each GPU
  std::chrono::milliseconds deadline{60'000};
  Log log{LogForm::Klog};
};

// The result of one run.
struct FinishedRun {
  int number = 0;
  JobResult result;
  bool answered = false;  // a client that requested it was still connected
};

struct GpuList {
  bool looked = false;
  JobResult result;
};

class Notebook {
 public:
  // Starts to list the GPUs at once.
  Notebook(sys::Loop& loop, NotebookOptions options);

  // The pages /, /run, /status and /healthz, for a server that ends before this object. They are
  // made in the loop.
  std::vector<http::Route> routes();

 private:
  void look();
  void looked(const JobResult& result);
  void run(http::Reply reply);
  void ran(const JobResult& result);
  void log_run(const FinishedRun& run) const;
  // Called when the GPUs are known.
  void show(http::Reply reply, bool page);
  http::Response shown(bool page) const;

  sys::Loop& loop_;
  NotebookOptions options_;
  GpuList gpus_;
  std::chrono::steady_clock::time_point looked_at_;
  std::optional<FinishedRun> last_;
  int runs_ = 0;
  Jobs jobs_;
  bool looking_ = false;
  bool running_ = false;
  struct Viewer {
    http::Reply reply;
    bool page;
  };
  std::vector<Viewer> viewers_;         // until the GPUs are known
  std::vector<http::Reply> listeners_;  // of the run
};

}  // namespace gantry::workload
