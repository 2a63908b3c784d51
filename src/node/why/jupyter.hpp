// SPDX-License-Identifier: Apache-2.0
// A Jupyter server and one of its kernels, asked as a browser asks them: /api, /api/kernels and the
// WebSocket of the kernel. Nothing runs in the kernel; it only says which kernel it is.
#pragma once

#include "base/core/result.hpp"
#include "net/http/client.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::why {

struct JupyterUrl {
  http::Url server;   // the prefix is the server's base URL
  std::string token;  // "": none
};

// From a browser's address bar: "https://host/user/a/lab/tree/x.ipynb?token=T". The page's own part
// of the path is not the server's.
Result<JupyterUrl> parse_jupyter_url(std::string_view text);

enum class JupyterStage : std::uint8_t {  // how far it went
  Unreachable,                            // no answer of HTTP
  NotJupyter,                             // another server's answer
  Denied,                                 // the list of kernels needs a token or a login
  NoKernel,                               // none runs, or not the wanted one
  Refused,                                // no WebSocket: `status` says how
  Lossy,                                  // a WebSocket, but not all answers came
  Answered
};

struct JupyterAnswer {
  JupyterStage stage = JupyterStage::Unreachable;
  std::string where;  // "http://10.0.0.7:8888/user/a"
  std::uint16_t port = 0;
  int status = 0;       // of HTTP, of the last answer
  std::string error;    // of the stage; "" if `status` says all
  std::string version;  // "6.4.12"
  std::string kernel;   // its id
  std::string about;    // "python3, idle"
  int requests = 0;     // to the kernel
  int answers = 0;
  std::chrono::milliseconds first{0};  // the time of the first answer
};

// `kernel`: the id that is wanted; "": an idle one, or one that runs. Takes at most `timeout` for
// HTTP and kKernelTimeout for the kernel.
inline constexpr std::chrono::seconds kKernelTimeout{10};
JupyterAnswer ask_jupyter(const JupyterUrl& url, const std::string& kernel,
                          std::chrono::milliseconds timeout);

}  // namespace gantry::why
