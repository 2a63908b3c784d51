// SPDX-License-Identifier: Apache-2.0
// From manifest to image: docker's manifest.json, or the index, manifest and configuration of OCI.
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "container/image/layered_files.hpp"
#include "container/image/parts_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::image {
namespace {

constexpr std::string_view kDockerManifest = "manifest.json";
constexpr std::string_view kIndex = "index.json";
constexpr std::size_t kMostLayers = 1024;     // engines allow 127
constexpr std::size_t kMostVariables = 4096;  // of the environment
constexpr std::size_t kMostImages = 256;      // in one archive
constexpr int kMostIndexes = 4;               // one inside the other

Result<json::Document> parsed(Parts& parts, std::string_view name) {
  const auto* text = parts.document(name);
  if (text == nullptr)
    return Error(Errc::Corrupt, fmt::format("{} is missing or is not JSON", name));
  return json::Document::parse(*text, json::Encoding::Any).in(name);
}

// "sha256:0123..." -> "blobs/sha256/0123..."
Result<std::string> blob_name(json::Value descriptor) {
  const auto digest = descriptor["digest"].string_or_empty();
  const auto colon = digest.find(':');
  const bool plain = digest.find_first_of("/.") == std::string::npos;
  if (colon == std::string::npos || !plain)
    return Error(Errc::Corrupt, fmt::format("\"{}\" is not a digest", digest));
  return fmt::format("blobs/{}/{}", digest.substr(0, colon), digest.substr(colon + 1));
}

Result<ImageConfig> read_config(Parts& parts, std::string_view name) {
  GANTRY_TRY(const auto document, parsed(parts, name));
  ImageConfig config{.architecture = document["architecture"].string_or_empty(),
                     .os = document["os"].string_or_empty(),
                     .env = document["config"]["Env"].strings()};
  if (config.env.size() > kMostVariables)
    return Error(Errc::TooLarge,
                 fmt::format("its environment has more than {} variables", kMostVariables));
  return config;
}

Result<Layer*> layer_named(Parts& parts, const std::string& name) {
  auto* part = parts.find(name);
  if (part == nullptr)
    return Error(Errc::Corrupt, fmt::format("layer {} is missing", name))
        .advise("the archive is not complete: save the image again");
  if (const auto* error = std::get_if<Error>(part)) return Error(*error).in("layer " + name);
  auto* layer = std::get_if<Layer>(part);
  if (layer == nullptr)
    return Error(Errc::Corrupt, fmt::format("layer {} is not an archive of files", name));
  return layer;
}

// `names`: lowest first. An image may have the same layer twice; its last use may take it.
Result<std::shared_ptr<const RootFiles>> stack(Parts& parts,
                                               const std::vector<std::string>& names) {
  if (names.size() > kMostLayers)
    return Error(Errc::TooLarge, fmt::format("the image has more than {} layers", kMostLayers));
  std::vector<Layer*> layers;
  for (const auto& name : names) {
    GANTRY_TRY(auto* layer, layer_named(parts, name));
    layers.push_back(layer);
  }
  auto files = std::make_shared<LayeredFiles>();
  for (auto layer = layers.begin(); layer != layers.end(); ++layer) {
    const bool again = std::find(layer + 1, layers.end(), *layer) != layers.end();
    files->apply(again ? **layer : std::move(**layer));
  }
  return std::shared_ptr<const RootFiles>(std::move(files));
}

Result<Image> finish(Parts& parts, std::string form, ImageConfig config,
                     const std::vector<std::string>& layers) {
  GANTRY_TRY(auto files, stack(parts, layers));
  return Image{.form = std::move(form),
               .config = std::move(config),
               .has_config = true,
               .files = std::move(files)};
}

void note_others(ImageConfig& config, std::size_t count, std::string_view chosen) {
  if (count > 1)
    config.notes.push_back(fmt::format("it has {} images; only {} was looked at", count, chosen));
}

Result<Image> docker_image(Parts& parts) {
  GANTRY_TRY(const auto manifest, parsed(parts, kDockerManifest));
  const auto first = manifest.root().element(0);
  if (!first) return Error(Errc::Corrupt, "manifest.json names no image");
  GANTRY_TRY(auto config, read_config(parts, first["Config"].string_or_empty()));
  config.name = first["RepoTags"].element(0).string_or_empty();
  note_others(config, manifest.root().size(), config.name.empty() ? "the first" : config.name);
  return finish(parts, "docker archive", std::move(config), first["Layers"].strings());
}

struct Candidate {
  std::string manifest;  // name of its blob
  std::string name;
  std::string architecture;
};

// An index may name further indexes. Attestations have the architecture "unknown".
Status find_images(Parts& parts, std::string_view name, int depth, std::vector<Candidate>& found) {
  if (depth > kMostIndexes) return Error(Errc::Corrupt, "its indexes name each other");
  GANTRY_TRY(const auto index, parsed(parts, name));
  for (const auto descriptor : index["manifests"]) {
    if (found.size() >= kMostImages)
      return Error(Errc::TooLarge, fmt::format("it has more than {} images", kMostImages));
    GANTRY_TRY(auto blob, blob_name(descriptor));
    const auto architecture = descriptor["platform"]["architecture"].string_or_empty();
    const auto media_type = descriptor["mediaType"].string_or_empty();
    if (architecture == "unknown" || parts.document(blob) == nullptr) continue;
    if (media_type.ends_with("image.index.v1+json") || media_type.ends_with("list.v2+json")) {
      GANTRY_CHECK(find_images(parts, blob, depth + 1, found));
      continue;
    }
    found.push_back(
        {std::move(blob),
         descriptor["annotations"]["org.opencontainers.image.ref.name"].string_or_empty(),
         architecture});
  }
  return {};
}

Result<Image> oci_image(Parts& parts) {
  std::vector<Candidate> found;
  GANTRY_CHECK(find_images(parts, kIndex, 0, found));
  if (found.empty())
    return Error(Errc::Corrupt, "index.json names no image that is in the archive");
  const auto own = std::find_if(found.begin(), found.end(), [](const Candidate& candidate) {
    return candidate.architecture == own_architecture();
  });
  const auto& chosen = own == found.end() ? found.front() : *own;
  GANTRY_TRY(const auto manifest, parsed(parts, chosen.manifest));
  GANTRY_TRY(const auto config_name, blob_name(manifest["config"]).in(chosen.manifest));
  GANTRY_TRY(auto config, read_config(parts, config_name));
  config.name = chosen.name;
  note_others(config, found.size(),
              chosen.architecture.empty() ? "the first" : "that for " + chosen.architecture);
  std::vector<std::string> layers;
  for (const auto descriptor : manifest["layers"]) {
    GANTRY_TRY(auto layer, blob_name(descriptor).in(chosen.manifest));
    layers.push_back(std::move(layer));
  }
  return finish(parts, "OCI layout", std::move(config), layers);
}

}  // namespace

Result<Image> assemble(Parts parts) {
  if (parts.find(kDockerManifest) != nullptr) return docker_image(parts);
  if (parts.find(kIndex) != nullptr) return oci_image(parts);
  return Error(Errc::Invalid, "it has neither manifest.json nor index.json, so it is not an image")
      .advise(
          "make one with `docker save IMAGE -o FILE` or `podman save IMAGE -o FILE`; give what "
          "`docker export` wrote as a directory");
}

}  // namespace gantry::image
