// SPDX-License-Identifier: Apache-2.0
#include "node/agent/agent_handover.hpp"

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kSuccessionComponent = "succession";
constexpr auto kDeadline = 5s;

}  // namespace

AgentHandover::AgentHandover(sys::Loop& loop, std::string socket, const Log& log,
                             HandoverCallbacks side)
    : loop_(loop),
      socket_(std::move(socket)),
      log_(log),
      handover_callbacks_(std::move(side)),
      kept_(loop) {
  look_soon();
}

void AgentHandover::look_soon() {
  if (!takeover_) timer_ = loop_.after(0ms, [this] { look(); });
}

void AgentHandover::look() {
  if (takeover_ || !handover_callbacks_.registered()) return;
  takeover_.emplace(loop_, socket_, kDeadline,
                    [this](Result<std::vector<kubelet::TakenConnection>> connections) {
                      taken(std::move(connections));
                    });
}

void AgentHandover::taken(Result<std::vector<kubelet::TakenConnection>> connections) {
  if (connections.ok()) {
    log_.info(kSuccessionComponent, "took over from the previous agent",
              {{"connections", connections->size()}});
    // Drops connections of resources that we do not offer: the kubelet would wait for an answer
    // forever.
    std::erase_if(*connections,
                  [this](const auto& one) { return !handover_callbacks_.offers(one.resource); });
    kept_.keep(*std::move(connections));
  } else if (connections.error().code() != Errc::NotFound) {
    log_.warning(kSuccessionComponent, "cannot take over from the previous agent",
                 {{"err", connections.error()}});
  }
  server_.emplace(
      loop_, kubelet::HandoverServer::Callbacks{.connections =
                                                    [this] {
                                                      auto all = handover_callbacks_.connections();
                                                      for (const auto& one : kept_.connections())
                                                        all.push_back(one);
                                                      return all;
                                                    },
                                                .quiet = handover_callbacks_.quiet,
                                                .given = handover_callbacks_.given});
  const auto listening = server_->listen(socket_);
  if (!listening.ok())
    log_.warning(kSuccessionComponent, "cannot wait for the next agent",
                 {{"err", listening.error()}});
}

}  // namespace gantry::agent
