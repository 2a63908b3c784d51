// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/describe.hpp"

#include "base/core/printable.hpp"
#include "gpu/mig/profile_table_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::mig {
namespace {

constexpr std::size_t kMaxSliceColumns = 9;  // "[1g.18gb]"
constexpr std::size_t kMinSliceColumns = 3;  // "[ ]"

using Change = SliceBox::Change;

std::vector<SliceBox> with_free_slices(const MigGpu& gpu, std::vector<SliceBox> boxes) {
  const auto slices = ProfileTable(gpu).memory_slices;
  SliceMask taken = 0;
  for (const auto& box : boxes) taken |= mask_of(box.place);
  for (unsigned slice = 0; slice < slices; ++slice) {
    if ((taken >> slice & 1) == 0) boxes.push_back({{slice, 1}, "", Change::None});
  }
  std::sort(boxes.begin(), boxes.end(),
            [](const auto& a, const auto& b) { return a.place < b.place; });
  return boxes;
}

bool destroys(const LayoutPlan& plan, const GpuInstance& instance) {
  return std::find(plan.destroy.begin(), plan.destroy.end(), instance) != plan.destroy.end();
}

std::string cut(std::string text, std::size_t width) {
  if (text.size() > width) text.resize(width);
  return text;
}

// "3g.71gb", or what of it fits.
std::string label_of(const SliceBox& box, std::size_t width) {
  if (box.profile.empty()) return width >= 3 ? " - " : width >= 1 ? "-" : "";
  auto label = box.profile;
  if (label.size() <= width) return label;
  label = label.substr(0, label.find('.'));
  return label.size() <= width ? label : "";
}

std::string head_of(const MigGpu& gpu) {
  return fmt::format("GPU {}  {}   ", gpu.index, printable(gpu.name));
}

std::string state_of(const MigGpu& gpu, const std::vector<SliceBox>& boxes, std::size_t width) {
  switch (gpu.current) {
    case model::MigMode::Unsupported: return "no MIG";
    case model::MigMode::Disabled: return "MIG off";
    case model::MigMode::Unknown: return "MIG mode unknown";
    case model::MigMode::Enabled: break;
  }
  return boxes.empty() ? "MIG on" : picture(boxes, width);
}

// Words that do not fit go to the next line, below the first word after the verb.
std::string wrap(std::string_view verb, const std::vector<std::string>& words, std::size_t width) {
  std::string text = fmt::format("  {:<8}", verb);
  std::size_t column = text.size();
  for (const auto& word : words) {
    if (column > 10 && column + word.size() + 1 > width) {
      text += '\n';
      text += std::string(10, ' ');
      column = 10;
    } else if (column > 10) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
  }
  return text + '\n';
}

std::string at(const Placement& place, std::string_view slice) {
  if (place.size == 1) return fmt::format("{} {}", slice, place.start);
  return fmt::format("{}s {}-{}", slice, place.start, place.start + place.size - 1);
}

std::vector<std::string> words_of(std::string_view profile, const Placement& place,
                                  const std::vector<std::string>& rest) {
  std::vector<std::string> words{printable(profile), "at", at(place, "memory slice")};
  if (!rest.empty()) words.back() += ':';
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

std::vector<std::string> uuids_of(const std::vector<ComputeInstance>& instances) {
  std::vector<std::string> texts;
  texts.reserve(instances.size());
  for (const auto& instance : instances)
    texts.push_back(printable(instance.uuid.text.empty() ? instance.profile : instance.uuid.text));
  return texts;
}

// Compute instances are worth a word only where they are not the whole GPU instance.
std::vector<std::string> parts_of(std::string_view gpu_profile,
                                  const std::vector<ComputeCreation>& parts) {
  if (parts.size() == 1 && parts[0].profile == gpu_profile) return {};
  if (parts.empty()) return {"no compute instances"};
  std::vector<std::string> texts;
  texts.reserve(parts.size());
  for (const auto& part : parts)
    texts.push_back(fmt::format("{} at {}", part.profile, at(part.place, "compute slice")));
  for (std::size_t i = 0; i + 1 < texts.size(); ++i) texts[i] += ',';
  return texts;
}

std::string describe_kept(const KeptGpuInstance& instance, std::size_t width) {
  auto text =
      wrap("keep", words_of(instance.profile, instance.place, uuids_of(instance.keep)), width);
  for (const auto& compute : instance.destroy) {
    text += wrap("destroy", {printable(compute.profile), "in it:", printable(compute.uuid.text)},
                 width);
  }
  for (const auto& compute : instance.create)
    text +=
        wrap("create", {compute.profile, "in it at", at(compute.place, "compute slice")}, width);
  return text;
}

}  // namespace

std::vector<SliceBox> present_boxes(const MigGpu& gpu) {
  return present_boxes(gpu, LayoutPlan{});
}

std::vector<SliceBox> present_boxes(const MigGpu& gpu, const LayoutPlan& plan) {
  std::vector<SliceBox> boxes;
  for (const auto& instance : gpu.instances) {
    boxes.push_back({instance.place, instance.profile,
                     destroys(plan, instance) ? Change::Destroy : Change::None});
  }
  return with_free_slices(gpu, std::move(boxes));
}

std::vector<SliceBox> planned_boxes(const MigGpu& gpu, const LayoutPlan& plan) {
  std::vector<SliceBox> boxes;
  for (const auto& kept : plan.keep) boxes.push_back({kept.place, kept.profile, Change::None});
  for (const auto& creation : plan.create)
    boxes.push_back({creation.place, creation.profile, Change::Create});
  return with_free_slices(gpu, std::move(boxes));
}

std::string picture(const std::vector<SliceBox>& boxes, std::size_t width) {
  std::size_t slices = 0;
  for (const auto& box : boxes) slices += box.place.size;
  if (slices == 0) return {};
  const auto columns = std::clamp(width / slices, kMinSliceColumns, kMaxSliceColumns);
  std::string text;
  for (const auto& box : boxes) {
    const auto inside = columns * box.place.size - 2;
    text += fmt::format("[{:<{}}]", label_of(box, inside), inside);
  }
  return cut(std::move(text), width);
}

std::string describe_gpu(const MigGpu& gpu, std::size_t width) {
  const auto head = head_of(gpu);
  const auto rest = width > head.size() ? width - head.size() : 0;
  return cut(head + state_of(gpu, present_boxes(gpu), rest), width);
}

std::string describe_plan(const MigGpu& gpu, const LayoutPlan& plan, std::size_t width) {
  const auto head = head_of(gpu);
  const auto rest = width > head.size() ? width - head.size() : 0;
  auto text = cut(head + state_of(gpu, present_boxes(gpu, plan), rest), width) + '\n';
  if (plan.changes_nothing()) return text + "  nothing changes\n";
  const auto next = after(gpu, plan);
  const auto arrow = fmt::format("{:>{}}", "->   ", head.size());
  text += cut(arrow + state_of(next, planned_boxes(gpu, plan), rest), width) + '\n';
  if (plan.changes_mode) {
    text += wrap("mode", {"MIG", plan.mode == model::MigMode::Enabled ? "on" : "off"}, width);
  }
  for (const auto& kept : plan.keep) text += describe_kept(kept, width);
  for (const auto& instance : plan.destroy)
    text += wrap("destroy", words_of(instance.profile, instance.place, uuids_of(instance.compute)),
                 width);
  for (const auto& creation : plan.create) {
    text += wrap(
        "create",
        words_of(creation.profile, creation.place, parts_of(creation.profile, creation.compute)),
        width);
  }
  return text;
}

}  // namespace gantry::mig
