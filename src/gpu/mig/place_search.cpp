// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/place_search_internal.hpp"

namespace gantry::mig {
namespace {

class PlaceSearch {
 public:
  PlaceSearch(const std::vector<PlaceGroup>& groups, const RoomRule* room)
      : groups_(groups), room_(room), chosen_(groups.size()) {}

  void run() { fill(0, 0, 0, {}); }
  bool found() const { return found_; }
  PlaceChoice choice() const {
    PlaceChoice choice{.places = {}, .gain = best_gain_};
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      auto& places = choice.places.emplace_back();
      for (const auto option : best_[group]) places.push_back(groups_[group].options[option]);
    }
    return choice;
  }

 private:
  // Equal instances get ascending options, so that each combination is tried once.
  void fill(std::size_t group, std::size_t first, SliceMask taken, Gain gain) {
    if (done()) return;
    if (group == groups_.size()) {
      compare(taken, gain);
      return;
    }
    if (chosen_[group].size() == groups_[group].count) {
      fill(group + 1, 0, taken, gain);
      return;
    }
    const auto& options = groups_[group].options;
    for (std::size_t option = first; option < options.size(); ++option) {
      const auto mask = mask_of(options[option].place);
      if (mask == 0 || (mask & taken) != 0) continue;
      chosen_[group].push_back(option);
      fill(group, option + 1, taken | mask, gain + options[option].gain);
      chosen_[group].pop_back();
    }
  }

  bool done() { return (found_ && room_ == nullptr) || ++steps_ > kMaxSearchSteps; }

  void compare(SliceMask taken, Gain gain) {
    if (found_ && gain < best_gain_) return;
    auto room = room_ == nullptr ? std::vector<unsigned>{} : (*room_)(taken);
    if (found_ && gain == best_gain_ && room <= best_room_) return;
    found_ = true;
    best_ = chosen_;
    best_gain_ = gain;
    best_room_ = std::move(room);
  }

  const std::vector<PlaceGroup>& groups_;
  const RoomRule* room_;  // nullptr: any combination will do
  std::vector<std::vector<std::size_t>> chosen_;
  std::vector<std::vector<std::size_t>> best_;
  Gain best_gain_;
  std::vector<unsigned> best_room_;
  bool found_ = false;
  unsigned steps_ = 0;
};

}  // namespace

std::optional<PlaceChoice> find_places(const std::vector<PlaceGroup>& groups,
                                       const RoomRule& room) {
  PlaceSearch search(groups, &room);
  search.run();
  if (!search.found()) return std::nullopt;
  return search.choice();
}

bool have_places(const std::vector<PlaceGroup>& groups) {
  PlaceSearch search(groups, nullptr);
  search.run();
  return search.found();
}

}  // namespace gantry::mig
