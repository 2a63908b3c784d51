// SPDX-License-Identifier: Apache-2.0
// Stands in for `gantry-nvml mig` and misbehaves: "silent" never answers, "garbage" answers with
// another message, "endless" never ends its line, "crash" ends by a signal.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

namespace {

constexpr int kSocket = 3;

bool say(std::string_view bytes) {
  return ::send(kSocket, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0;
}

int misbehave(std::string_view how) {
  std::array<char, 4096> request{};
  while (::recv(kSocket, request.data(), request.size(), 0) > 0) {
    if (how == "garbage") say("{\"done\":1}\n");
    if (how == "crash") ::raise(SIGKILL);
    const std::string part(60'000, '[');
    while (how == "endless" && say(part)) {
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return argc > 1 ? misbehave(argv[1]) : 2;
}
