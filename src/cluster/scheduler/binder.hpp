// SPDX-License-Identifier: Apache-2.0
// The bind verb: decide, promise, send ONE Binding that carries node and placement together, and
// learn what became of it. A crash at any point leaves the pod bound with its placement, or not at
// all; the promise dies with the process.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "cluster/scheduler/book.hpp"
#include "cluster/scheduler/counters.hpp"
#include "cluster/scheduler/wire.hpp"
#include "net/http/message.hpp"
#include "net/kube/binding.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace gantry::scheduler {

// What a Binder needs of the world; each may be called by several threads at once.
struct Hands {
  std::function<kube::BindAnswer(const kube::Binding&)> bind;
  std::function<Result<json::Document>(const std::string& name_space, const std::string& pod)> read;
  // For how long a Binding that is sent now comes from the only one who may send some. Denied, with
  // who leads instead, where that is not us.
  std::function<Result<std::chrono::milliseconds>()> lead;
  std::function<void(const BindArgs&, const Error& why)> failed;  // to be told; may be none
};

struct BinderOptions {
  std::chrono::milliseconds request{4000};  // how long a Binding takes at most
  // After that long a Binding without an answer is not under way any more: the server's own limit.
  std::chrono::milliseconds forgotten = std::chrono::seconds(60);
  std::chrono::milliseconds seen = std::chrono::seconds(30);  // in which a watch shows a Binding
};

class Binder {
 public:
  Binder(Book& book, Counters& counters, Hands hands, BinderOptions options = {});

  // As gpushare has it: 200 and an empty Error, or 500 and the reason.
  http::Response bind(std::string_view body);
  Status bind(const BindArgs& args);

  // Looks after promises that the watch should have shown by now; every few seconds.
  void look_after(Moment now);

  // Takes no more, and waits for those under way; false where they take longer.
  bool stop(std::chrono::milliseconds at_most);

 private:
  Status bind_one(BindArgs args);
  Status check_lead() const;
  // Fills in the uid where the request has none: a promise is the pod's, whoever it is.
  Result<std::optional<podspec::PodAsk>> asked(BindArgs& args, bool& already) const;
  Status send(const BindArgs& args, const Decision& decision);
  void give_back(const BindArgs& args, const Decision& decision);
  void settle(const Promise& promise, Moment now);
  bool enter();
  void leave();

  Book& book_;
  Counters& counters_;
  Hands hands_;
  BinderOptions options_;
  std::mutex mutex_;
  std::condition_variable none_left_;
  int under_way_ = 0;
  bool stopped_ = false;
};

}  // namespace gantry::scheduler
