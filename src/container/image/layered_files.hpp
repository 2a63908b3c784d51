// SPDX-License-Identifier: Apache-2.0
// The files of an image as its layers make them, one upon the other, without unpacking them.
#pragma once

#include "container/image/layer.hpp"
#include "container/image/root_files.hpp"

namespace gantry::image {

class LayeredFiles : public RootFiles {
 public:
  // From the lowest layer to the highest.
  void apply(Layer&& layer);

  bool exists(std::string_view path) const override;
  std::optional<std::uint64_t> size(std::string_view path) const override;
  std::optional<std::string> read(std::string_view path, std::size_t limit) const override;
  std::optional<std::uint16_t> elf_machine(std::string_view path) const override;
  std::vector<std::string> list(std::string_view path) const override;

 private:
  // Where the path leads when all symlinks are followed; nullopt for a loop. It may not exist.
  std::optional<std::string> real_path(std::string_view path) const;
  // The same for all parts but the last: a layer adds and removes names, not what they lead to.
  std::optional<std::string> place_of(std::string_view path) const;
  const LayerFile* find(std::string_view path) const;  // follows symlinks
  bool has_below(std::string_view real) const;
  void remove_below(std::string_view real);
  void remove(std::string_view real);
  void put(std::string place, LayerFile file);

  LayerFiles files_;
};

}  // namespace gantry::image
