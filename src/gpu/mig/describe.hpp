// SPDX-License-Identifier: Apache-2.0
// Layouts and plans for people: a picture of the slices, and sentences.
//   GPU 0  NVIDIA H200   [3g.71gb        ][2g.35gb ][1g ][ - ]
#pragma once

#include "gpu/mig/solve.hpp"

#include <span>
#include <string>
#include <vector>

namespace gantry::mig {

// One memory slice, or the instance that has several of them.
struct SliceBox {
  Placement place;
  std::string profile;  // "" if the slice is free
  enum class Change : std::uint8_t { None, Create, Destroy } change = Change::None;
  bool operator==(const SliceBox&) const = default;
};

// What is on the GPU, slice by slice, without gaps; empty if its profiles are not known.
std::vector<SliceBox> present_boxes(const MigGpu& gpu);
// The same with a mark on what the plan destroys.
std::vector<SliceBox> present_boxes(const MigGpu& gpu, const LayoutPlan& plan);
// What is on the GPU after the plan, with a mark on what it creates.
std::vector<SliceBox> planned_boxes(const MigGpu& gpu, const LayoutPlan& plan);

// At most `width` columns: "[3g.71gb    ][2g ][ - ]". A name that does not fit becomes "3g", then
// "".
std::string picture(const std::vector<SliceBox>& boxes, std::size_t width);

// "GPU 0  NVIDIA H200   [3g.71gb  ]..." or "... MIG off". At most `width` columns.
std::string describe_gpu(const MigGpu& gpu, std::size_t width = 80);

// The picture before and after, then a line for each instance that is kept, destroyed or created,
// and for a change of the mode. A line longer than `width` columns goes on in the next one.
std::string describe_plan(const MigGpu& gpu, const LayoutPlan& plan, std::size_t width = 80);

}  // namespace gantry::mig
