// SPDX-License-Identifier: Apache-2.0
#include "why/inside.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace gantry::why {
namespace {

constexpr std::size_t kFileLimit = std::size_t{1} << 20;
constexpr std::size_t kPathLimit = 64;  // directories of LD_LIBRARY_PATH that are looked at
constexpr std::string_view kOurs = "/usr/local/nvidia";

std::string variable(const Inside& inside, std::string_view name) {
  for (const auto& entry : inside.environment) {
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return "";
}

bool is_gpu_node(std::string_view name) {
  return name.starts_with("nvidia") && name.size() > 6 && parse_u64(name.substr(6));
}

Link nodes_link(const sys::Host& root) {
  Link link{.id = "container.nodes", .what = "It has device nodes"};
  std::vector<std::string> names;
  if (const auto listed = root.list("/dev"); listed.ok()) {
    for (const auto& name : *listed) {
      if (is_gpu_node(name)) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  for (const auto& name : names)
    link.read += fmt::format("{}/dev/{}", link.read.empty() ? "" : " ", name);
  if (names.empty()) {
    link.verdict = Verdict::Broken;
    link.read = "no /dev/nvidia[0-9]";
    link.cause =
        "the container was started without a GPU's node: neither CDI nor a runtime gave it one";
    link.remedy = "gantry explain CONTAINER on the node; gantry cdi list";
  } else if (!root.info("/dev/nvidiactl").ok()) {
    link.verdict = Verdict::Broken;
    link.cause = "/dev/nvidiactl is missing, and without it no GPU can be opened";
    link.remedy = "on the node: gantry doctor; nvidia-modprobe -c 0 -u";
  }
  return link;
}

std::optional<Link> musl_link(const sys::Host& root) {
  const auto listed = root.list("/lib");
  if (!listed.ok()) return std::nullopt;
  const auto musl = std::find_if(listed->begin(), listed->end(), [](const std::string& name) {
    return name.starts_with("ld-musl-");
  });
  if (musl == listed->end() || root.info("/lib64/ld-linux-x86-64.so.2").ok()) return std::nullopt;
  return Link{.id = "container.musl",
              .what = "Its C library is glibc",
              .verdict = Verdict::Broken,
              .read = "/lib/" + *musl,
              .cause = "the image is built on musl (Alpine); the driver's libraries need glibc",
              .remedy = "use an image with glibc: debian, ubuntu, nvidia/cuda"};
}

// Where the loader would find libcuda, in its order.
std::vector<std::string> search_path(const Inside& inside) {
  std::vector<std::string> path;
  const auto own = variable(inside, "LD_LIBRARY_PATH");
  for (const auto directory : split(own, ':')) {
    if (directory.starts_with('/') && path.size() < kPathLimit) path.emplace_back(directory);
  }
  for (const auto* directory :
       {"/usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v2", "/usr/lib64/glibc-hwcaps/x86-64-v2",
        "/usr/lib/x86_64-linux-gnu/tls", "/usr/lib64/tls", "/usr/local/nvidia/lib64",
        "/usr/local/cuda/compat", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64",
        "/usr/lib64", "/usr/local/lib"})
    path.emplace_back(directory);
  return path;
}

struct Library {
  std::string path;     // as the loader names it
  std::string version;  // of the file's name; "" when it has none
};

std::optional<Library> find_libcuda(const sys::Host& root, const Inside& inside) {
  for (const auto& directory : search_path(inside)) {
    const auto path = directory + "/libcuda.so.1";
    const auto real = root.resolve(path);
    if (!real.ok() || !root.info(path).ok()) continue;
    const auto at = real->rfind(".so.");
    const auto version = at == std::string::npos ? "" : real->substr(at + 4);
    return Library{path, version == "1" ? "" : version};
  }
  return std::nullopt;
}

Link library_link(const sys::Host& root, const Inside& inside) {
  Link link{.id = "container.libcuda", .what = "Its loader finds libcuda"};
  const auto found = find_libcuda(root, inside);
  if (!found) {
    link.verdict = Verdict::Broken;
    link.read = "no libcuda.so.1 where the loader looks";
    link.cause = "the driver's libraries are not in the container, or not where its loader looks";
    link.remedy = "gantry explain CONTAINER on the node says how they should get there";
    return link;
  }
  link.read =
      found->version.empty() ? found->path : fmt::format("{} ({})", found->path, found->version);
  const bool compat = contains(found->path, "/compat/");
  if (found->version.empty() || inside.driver_version.empty() || compat ||
      found->version == inside.driver_version)
    return link;
  link.verdict = Verdict::Broken;
  link.cause = fmt::format(
      "{} comes first and is of driver {}, the kernel has {}: an image or a "
      "volume with a driver of its own",
      found->path, found->version, inside.driver_version);
  link.remedy = variable(inside, "LD_LIBRARY_PATH").empty()
                    ? "take libcuda out of the image: the node brings the right one"
                    : "take that directory out of LD_LIBRARY_PATH, or libcuda out of the image";
  return link;
}

// The mount point is the fifth word of a line of mountinfo, the root in its file system the fourth.
std::optional<Link> mounts_link(const Inside& inside) {
  for (const auto line : lines(inside.mountinfo)) {
    const auto words = split(line, ' ');
    if (words.size() < 5) continue;
    const auto point = words[4];
    const bool ours = contains(words[3], "/gantry/driver/") || contains(words[3], "/sets/");
    const bool below = point == kOurs || point.starts_with(fmt::format("{}/", kOurs));
    if (!below || ours || contains(words[3], "nvidia")) continue;
    return Link{
        .id = "container.mounts",
        .what = "Nothing is mounted over the driver",
        .verdict = Verdict::Broken,
        .read = fmt::format("{} from {}", point, words[3]),
        .cause = fmt::format("a volume of the pod is mounted at {}, where the driver's files "
                             "belong, and hides them",
                             point),
        .remedy = "mount that volume elsewhere"};
  }
  return std::nullopt;
}

std::vector<std::string> python_places(const sys::Host& root) {
  std::vector<std::string> places;
  for (const auto* base : {"/usr/lib", "/usr/local/lib", "/opt/conda/lib", "/opt/venv/lib"}) {
    const auto listed = root.list(base);
    if (!listed.ok()) continue;
    for (const auto& name : *listed) {
      if (!name.starts_with("python3")) continue;
      for (const auto* kind : {"site-packages", "dist-packages"})
        places.push_back(fmt::format("{}/{}/{}", base, name, kind));
    }
  }
  return places;
}

std::optional<Link> framework_link(const sys::Host& root) {
  for (const auto& place : python_places(root)) {
    const auto text = root.read(place + "/torch/version.py", kFileLimit);
    if (!text.ok()) continue;
    Link link{
        .id = "container.framework", .what = "Its framework knows GPUs", .read = place + "/torch"};
    if (!contains(*text, "+cpu") && !contains(*text, "cuda: Optional[str] = None") &&
        !contains(*text, "cuda = None"))
      return link;
    link.verdict = Verdict::Broken;
    link.cause =
        "the image's PyTorch was built without CUDA: torch.cuda.is_available() is False on "
        "any machine";
    link.remedy = "install the CUDA build of torch in the image";
    return link;
  }
  return std::nullopt;
}

}  // namespace

Result<int> process_of(const sys::Host& machine, std::string_view container_id) {
  const bool sane = container_id.size() >= 12 &&
                    std::all_of(container_id.begin(), container_id.end(), [](unsigned char letter) {
                      return std::isalnum(letter) != 0 || letter == '-' || letter == '_';
                    });
  if (!sane)
    return Error(Errc::Invalid,
                 "a container's id has at least 12 letters and digits: crictl ps shows it");
  GANTRY_TRY(const auto entries, machine.list("/proc"));
  std::optional<std::uint64_t> first;
  for (const auto& entry : entries) {
    const auto pid = parse_u64(entry);
    if (!pid || (first && *pid > *first)) continue;
    const auto cgroup = machine.read(fmt::format("/proc/{}/cgroup", *pid), kFileLimit);
    if (cgroup.ok() && contains(*cgroup, container_id)) first = pid;
  }
  if (!first)
    return Error(Errc::NotFound,
                 fmt::format("no process of container {} runs on this node", container_id));
  return static_cast<int>(*first);
}

Result<Inside> read_inside(const sys::Host& machine, int pid) {
  Inside inside;
  GANTRY_TRY(const auto environment,
             machine.read(fmt::format("/proc/{}/environ", pid), kFileLimit));
  for (const auto entry : split(environment, '\0')) inside.environment.emplace_back(entry);
  GANTRY_TRY(inside.mountinfo, machine.read(fmt::format("/proc/{}/mountinfo", pid), kFileLimit));
  return inside;
}

std::vector<Link> inside_links(const sys::Host& root, const Inside& inside) {
  std::vector<Link> links{nodes_link(root)};
  if (auto musl = musl_link(root)) links.push_back(*std::move(musl));
  if (auto mounts = mounts_link(inside)) links.push_back(*std::move(mounts));
  links.push_back(library_link(root, inside));
  if (auto framework = framework_link(root)) links.push_back(*std::move(framework));
  return links;
}

}  // namespace gantry::why
