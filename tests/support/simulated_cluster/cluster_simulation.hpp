// SPDX-License-Identifier: Apache-2.0
// A simulated cluster: an API server with pods, nodes and quotas, a watch that is late, repeats
// events or breaks off, and a scheduler that decides with placement::Cluster and may crash between
// any two steps of a bind. The same seed gives the same history. Only tests use it.
//
// It keeps its own accounts and checks these invariants:
//   - At every Binding: it never puts more on a card than the scheduler knows that the card has, by
//     memory, time and slots, and never a second pod on a card that a pod has exclusively; nor does
//     it exceed the quota of a namespace as the scheduler knows it.
//   - After every step: the scheduler counts every bound pod, so it never sees a card or a
//     namespace emptier than it is. What it counts in addition is exactly its assumed pods and the
//     pods whose end it has not heard of.
//   - Once it has received all events (a crash, a list, the end), its state is the real one.
#pragma once

#include "cluster/placement/cluster.hpp"
#include "support/simulated_cluster/decision_log.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::simulate {

struct SimulationOptions {
  std::uint32_t seed = 1;
  std::size_t nodes = 1000;
  std::size_t pods_at_once = 30'000;  // above this, more pods leave than come
  std::size_t asked = 100;            // nodes in one request of the kube-scheduler
  // Each happens once in so many cases; 0: never.
  std::uint32_t crash = 20'000;    // at each point of a bind
  std::uint32_t refused = 200;     // Bindings that the API server refuses
  std::uint32_t unanswered = 200;  // ... or whose answer is lost, bound or not
  std::uint32_t broken =
      20'000;                // watches that break off: pending events are lost, then a list follows
  std::uint32_t twice = 20;  // events that are repeated
  std::uint32_t late = 4;    // events that are delayed
  std::uint32_t node_change = 200;  // for each pod that comes
  std::uint32_t quota_change = 500;
  bool quotas = true;  // of most namespaces
  bool log = true;
};

struct SimulationCounts {
  std::uint64_t came = 0;
  std::uint64_t placed = 0;  // Bindings done
  std::uint64_t left = 0;
  std::uint64_t refused = 0;     // no node fits
  std::uint64_t over_quota = 0;  // ... where only the quota forbids it
  std::uint64_t crashes = 0;
  std::uint64_t lists = 0;
  std::uint64_t unanswered = 0;
  std::uint64_t node_changes = 0;
  std::uint64_t quota_changes = 0;
};

class ClusterSimulation {
 public:
  explicit ClusterSimulation(const SimulationOptions& options);

  Status step();    // one pod comes or goes, with all consequences
  Status settle();  // delivers all pending events; then scheduler and API must agree exactly
  Status empty();   // all pods leave
  const SimulationCounts& counts() const { return counts_; }
  const std::vector<std::string>& log() const { return log_; }
  const placement::Cluster& cluster() const { return cluster_; }

 private:
  using Index = std::uint32_t;  // of a pod, a node or a namespace: its place in a list below
  struct Amounts {
    std::uint64_t mib = 0;
    std::uint64_t cores = 0;
    std::uint64_t slots = 0;
    bool operator==(const Amounts&) const = default;
    void add(const Amounts& more);
    void subtract(const Amounts& less);
    bool covers(const Amounts& other) const;
  };
  // The real amounts in the API server, and the amounts that the scheduler should count.
  struct Totals {
    Amounts actual;
    Amounts counted;
  };
  struct Card {
    model::GpuUuid uuid;
    Totals totals;
  };
  struct Node {
    podspec::NodeInfo facts;     // as in the API
    podspec::NodeInfo observed;  // as the scheduler knows them
    std::vector<Card> cards;
    bool touched = false;
  };
  struct NamespaceState {
    std::string name_space;
    placement::Quota quota;
    placement::Quota observed;
    Totals totals;
    bool touched = false;
  };
  struct CardAllocation {
    Index card = 0;  // of the node
    Amounts sums;
  };
  // Kept until the API does not have it and the scheduler does not count it.
  struct Pod {
    podspec::PodRequest ask;
    Index number = 0;
    Index team = 0;
    Index node = 0;  // where it is bound or assumed
    podspec::Placement placement;
    std::vector<CardAllocation> taken;
    bool exists = true;  // the API has it
    bool bound = false;
    bool counted = false;       // by the scheduler
    bool bind_unknown = false;  // the answer is missing: only the API knows
  };
  struct Event {
    enum class EventKind : std::uint8_t { Pod, Node, Quota };  // bound or gone; changed; changed
    EventKind what = EventKind::Pod;
    Index number = 0;
  };

  // ---- the world
  void add_node(std::size_t number);
  void add_teams();
  placement::Quota random_quota(std::uint64_t mib_percent, std::uint64_t cores_percent) const;
  podspec::PodRequest random_request(Index number);
  void change_random_node();
  void change_random_quota();
  Status arrive();
  Status leave();
  bool chance(std::uint32_t one_in) { return one_in > 0 && random_() % one_in == 0; }

  // ---- the API server
  Status take(Pod& pod, Index node, podspec::Placement placement);
  Status bind(Pod& pod);
  Status check_card(const Pod& pod, const CardAllocation& taken) const;
  void enqueue_event(Event event) { events_.push_back(event); }
  void deliver(std::size_t most);

  // ---- the accounts
  void move(Pod& pod, bool Pod::*state, Amounts Totals::*account, bool to);
  void set_bound(Pod& pod, bool to) { move(pod, &Pod::bound, &Totals::actual, to); }
  void set_counted(Pod& pod, bool to) { move(pod, &Pod::counted, &Totals::counted, to); }
  void forget(Index number);  // a pod that no longer exists anywhere
  void touch(Index node);
  void touch_team(Index team);
  Status check_touched();
  Status check_node(const Node& node);
  Status check_team(const NamespaceState& team) const;
  Status check_equal();  // all amounts must be equal

  // ---- the scheduler
  Status schedule(Pod& pod);
  Status place_on(Pod& pod, Index node);
  Status crash();
  Status list();  // lists everything again, as after a start or a broken watch
  void apply_event(const Event& event);
  void set_node(Node& node);
  void set_quota(NamespaceState& team);
  void set_pod(Pod& pod);
  void remove_pod(Index number);
  void release(Pod& pod);
  Status reserve(Pod& pod, Index node);
  void write(const placement::LogEntry& step);

  SimulationOptions options_;
  std::mt19937_64 random_;
  std::mt19937_64 quota_random_;  // separate, so that the history without quotas stays the same
  SimulationCounts counts_;
  std::vector<Node> nodes_;
  std::vector<std::string_view> names_;  // of nodes_, contiguous for requests
  std::vector<NamespaceState> teams_;
  std::vector<std::unique_ptr<Pod>> pods_;  // all pods, including former ones
  std::vector<Index> existing_;             // pods in the API, to pick one at random
  std::deque<Event> events_;
  std::vector<Index> touched_;
  std::vector<Index> touched_teams_;
  placement::Cluster cluster_;
  std::vector<std::string> log_;
  std::vector<std::string_view> request_;
  std::vector<placement::Fit> fits_;
  std::vector<placement::CardUse> uses_;
};

}  // namespace gantry::simulate
