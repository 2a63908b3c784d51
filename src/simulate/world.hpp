// SPDX-License-Identifier: Apache-2.0
// A cluster that does not exist: an API server that holds pods and nodes, a watch that is late,
// says things twice or breaks off, and a scheduler that decides with place::Cluster and may die
// between any two steps of a bind. One seed gives one history. No product uses it.
//
// What holds, checked here by books of its own:
//   - a Binding never puts more on a card than the scheduler was told that it has, by memory, time
//     and slots, and nobody on a card that somebody has alone: at every Binding;
//   - once the scheduler has heard everything (a crash, a list, the end), it believes exactly what
//     is so: nothing leaked.
#pragma once

#include "place/cluster.hpp"
#include "place/log.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace gantry::simulate {

struct Options {
  std::uint32_t seed = 1;
  std::size_t nodes = 1000;
  std::size_t pods_at_once = 30'000;  // beyond, more leave than come
  std::size_t asked = 100;            // nodes in one question of the kube-scheduler, as it does it
  // One in so many. 0: never.
  std::uint32_t crash = 20'000;    // at each point of a bind
  std::uint32_t refused = 200;     // Bindings that the API server refuses
  std::uint32_t unanswered = 200;  // ... or whose answer is lost, done or not
  std::uint32_t broken = 20'000;  // watches that break off: what was under way is lost, then a list
  std::uint32_t twice = 20;       // events that come again
  std::uint32_t late = 4;         // events that wait
  std::uint32_t node_change = 200;  // for each pod that comes
  bool log = true;
};

struct Counts {
  std::uint64_t came = 0;
  std::uint64_t placed = 0;  // Bindings done
  std::uint64_t left = 0;
  std::uint64_t refused = 0;  // no node fitted
  std::uint64_t crashes = 0;
  std::uint64_t lists = 0;
  std::uint64_t unanswered = 0;
  std::uint64_t node_changes = 0;
};

class World {
 public:
  explicit World(const Options& options);

  Status step();    // one pod comes or goes, and what follows
  Status settle();  // everything under way arrives; then scheduler and API must agree exactly
  Status empty();   // all pods leave
  const Counts& counts() const { return counts_; }
  const std::vector<std::string>& log() const { return log_; }
  const place::Cluster& cluster() const { return cluster_; }

 private:
  struct Pod {
    ask::PodAsk ask;
    std::string node;  // "": not bound
    ask::Placement placement;
    bool tried = false;  // an answer is missing: only the API knows
  };
  struct Sums {
    std::uint64_t mib = 0;
    std::uint64_t cores = 0;
    std::uint64_t slots = 0;
  };
  struct Event {
    std::string uid;   // of a pod that was bound or is gone
    std::string node;  // or a node that changed
  };

  // ---- the world
  void add_node(std::size_t number);
  ask::PodAsk some_ask();
  void change_some_node();
  Status arrive();
  Status leave();
  bool chance(std::uint32_t one_in) { return one_in > 0 && random_() % one_in == 0; }

  // ---- the API server
  Status bind(Pod& pod, const std::string& node, const ask::Placement& placement);
  void unbind(const Pod& pod);
  void tell(Event event);
  Status deliver(std::size_t most);

  // ---- the scheduler
  Status schedule(Pod& pod);
  Status place_on(Pod& pod, std::string_view node);
  Status crash();
  Status list();  // everything anew, as after a start or a watch that broke
  void hear(const Event& event);
  void set_node(const ask::NodeFacts& facts);
  void set_pod(const Pod& pod);
  void remove_pod(const std::string& uid);
  void release(const std::string& uid);
  Result<ask::Placement> reserve(const ask::PodAsk& ask, std::string_view node);
  void write(const place::Step& step);
  Status compare() const;

  Options options_;
  std::mt19937_64 random_;
  Counts counts_;
  std::size_t next_ = 0;
  std::map<std::string, ask::NodeFacts> nodes_;            // as the API has them
  std::unordered_map<std::string, ask::NodeFacts> heard_;  // as the scheduler was told
  std::vector<std::string> names_;
  std::unordered_map<std::string, Pod> pods_;
  std::vector<std::string> uids_;               // of pods_, for picking one
  std::unordered_map<std::string, Sums> sums_;  // by UUID: what bound pods have
  std::deque<Event> events_;
  place::Cluster cluster_;
  std::unordered_set<std::string> store_;  // uids that the scheduler has, promises among them
  std::vector<std::string> log_;
  std::vector<std::string_view> question_;
  std::vector<place::Fit> fits_;
};

}  // namespace gantry::simulate
