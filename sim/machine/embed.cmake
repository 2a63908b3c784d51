# Turns machines/*.yaml into one C++ table: cmake -DOUT=... -DDIR=... -P embed.cmake
file(GLOB_RECURSE files RELATIVE ${DIR} ${DIR}/*.yaml)
list(SORT files)
set(rows "")
foreach(file ${files})
  string(REGEX REPLACE "\\.yaml$" "" name "${file}")
  file(READ ${DIR}/${file} text)
  string(APPEND rows "    {\"${name}\", R\"gantry(${text})gantry\"},\n")
endforeach()
file(WRITE ${OUT} "// made from machines/*.yaml
#include \"sim/machine/machine_internal.hpp\"
namespace gantry::sim {
namespace {
struct Row { std::string_view name, text; };
constexpr Row kRows[] = {
${rows}};
}  // namespace
std::optional<std::string_view> embedded_text(std::string_view name) {
  for (const auto& row : kRows) {
    if (row.name == name) return row.text;
  }
  return std::nullopt;
}
std::vector<std::string> embedded_names() {
  std::vector<std::string> names;
  for (const auto& row : kRows) names.emplace_back(row.name);
  return names;
}
}  // namespace gantry::sim
")
