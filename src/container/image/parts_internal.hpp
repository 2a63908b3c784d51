// SPDX-License-Identifier: Apache-2.0
// The files of an archive or of an OCI layout. Which of them are layers is known only when the
// manifest was read, and that may come last in an archive that can be read only once. So each file
// is read for what its first bytes say that it is.
#pragma once

#include "container/image/image.hpp"
#include "container/image/layer.hpp"

#include <functional>
#include <map>
#include <string>
#include <variant>

namespace gantry::image {

// Documents are JSON text. An error is the reason why a file could not be read; it counts only if
// the image uses the file.
using Part = std::variant<std::string, Layer, Error>;

struct Parts {
  std::map<std::string, Part, std::less<>> files;         // by name: "manifest.json"
  std::map<std::string, std::string, std::less<>> links;  // docker shares equal layers by symlinks

  // Follows links; nullptr if there is no such file.
  Part* find(std::string_view name);
  const std::string* document(std::string_view name);
};

// Fails only with TooLarge; other errors become the part.
Result<Part> read_part(ByteStream& stream, ReadBudget& budget);

// All files of an archive.
Result<Parts> read_parts(ByteStream& archive, ReadBudget& budget);

// Puts the image together: by docker's manifest.json, else by index.json of OCI.
Result<Image> assemble(Parts parts);

}  // namespace gantry::image
