// SPDX-License-Identifier: Apache-2.0
// How much of an image is read. An archive of a stranger may unpack to more than any disk has, or
// have more names than fit into memory; the budget ends the reading before either happens.
#pragma once

#include "base/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gantry::image {

// The largest images of machine learning have 50 GiB and 600,000 files.
struct ReadLimits {
  std::uint64_t bytes = std::uint64_t{192} << 30U;     // read and unpacked, all layers together
  std::uint64_t ratio_from = std::uint64_t{1} << 30U;  // from this size on, `ratio` is checked
  std::uint64_t ratio = 400;                           // unpacked bytes for one packed byte
  std::size_t entries = 2'000'000;                     // of all layers
  std::size_t name_bytes = std::size_t{256} << 20U;    // of their paths and link targets
  std::size_t kept_bytes = std::size_t{192} << 20U;    // of the contents that are kept
  std::size_t parts = 4096;                            // files of the archive around the layers
  std::size_t document_bytes = std::size_t{4} << 20U;  // of one manifest or configuration
};

// Counts what was read; each function fails with TooLarge when its limit is passed.
class ReadBudget {
 public:
  explicit ReadBudget(const ReadLimits& limits) : limits_(limits) {}
  const ReadLimits& limits() const { return limits_; }

  Status take_bytes(std::uint64_t bytes);
  // `packed` and `unpacked`: of one compressed stream, from its beginning.
  Status check_ratio(std::uint64_t packed, std::uint64_t unpacked) const;
  Status take_entry(std::string_view path, std::string_view target);
  Status take_part();
  // False: there is no room for it, so the content is not kept.
  bool keep(std::uint64_t bytes);

 private:
  ReadLimits limits_;
  std::uint64_t bytes_ = 0;
  std::size_t entries_ = 0;
  std::size_t name_bytes_ = 0;
  std::size_t kept_ = 0;
  std::size_t parts_ = 0;
};

}  // namespace gantry::image
