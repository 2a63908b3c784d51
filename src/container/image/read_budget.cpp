// SPDX-License-Identifier: Apache-2.0
#include "container/image/read_budget.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

namespace gantry::image {

Status ReadBudget::take_bytes(std::uint64_t bytes) {
  bytes_ += bytes;
  if (bytes_ <= limits_.bytes) return {};
  return Error(Errc::TooLarge,
               fmt::format("the image unpacks to more than {}", human_bytes(limits_.bytes)));
}

Status ReadBudget::check_ratio(std::uint64_t packed, std::uint64_t unpacked) const {
  if (unpacked < limits_.ratio_from || unpacked / limits_.ratio <= packed) return {};
  return Error(Errc::TooLarge,
               fmt::format("{} unpack to more than {}, more than {} times as much: it is made to "
                           "fill a disk, not to be an image",
                           human_bytes(packed), human_bytes(unpacked), limits_.ratio));
}

Status ReadBudget::take_entry(std::string_view path, std::string_view target) {
  ++entries_;
  name_bytes_ += path.size() + target.size();
  if (entries_ > limits_.entries)
    return Error(Errc::TooLarge, fmt::format("the image has more than {} files", limits_.entries));
  if (name_bytes_ > limits_.name_bytes)
    return Error(Errc::TooLarge, fmt::format("the names of the image's files have more than {}",
                                             human_bytes(limits_.name_bytes)));
  return {};
}

Status ReadBudget::take_part() {
  if (++parts_ <= limits_.parts) return {};
  return Error(Errc::TooLarge,
               fmt::format("it has more than {} files, but an archive of an image has a few for "
                           "each layer",
                           limits_.parts));
}

bool ReadBudget::keep(std::uint64_t bytes) {
  if (bytes > limits_.kept_bytes - kept_) return false;
  kept_ += bytes;
  return true;
}

}  // namespace gantry::image
