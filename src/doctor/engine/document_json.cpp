// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/document.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gantry::doctor {
namespace {

using Json = nlohmann::json;

// Builds the tree while it is parsed, so that a hostile file never becomes a deep json value.
class Builder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return put(Document::scalar("")); }
  bool boolean(bool value) override { return put(Document::scalar(value ? "true" : "false")); }
  bool number_integer(number_integer_t value) override {
    return put(Document::scalar(fmt::to_string(value)));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return put(Document::scalar(fmt::to_string(value)));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return put(Document::scalar(text));
  }
  bool string(string_t& value) override { return put(Document::scalar(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool start_object(std::size_t) override { return start(true); }
  bool start_array(std::size_t) override { return start(false); }
  bool end_object() override { return finish(); }
  bool end_array() override { return finish(); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    error = fmt::format("not JSON at byte {}", at);
    return false;
  }

  Document root;
  std::string error;

 private:
  struct OpenLevel {
    Document document;
    bool object = false;
    std::string key;
  };

  bool put(Document value) {
    if (++values_ > kMaxDocumentValues) return refuse("too many values");
    if (open_.empty()) {
      root = std::move(value);
    } else if (open_.back().object) {
      open_.back().document.add(std::move(open_.back().key), std::move(value));
    } else {
      open_.back().document.add(std::move(value));
    }
    return true;
  }
  bool start(bool object) {
    if (open_.size() >= kMaxDocumentDepth) return refuse("nested too deeply");
    open_.push_back({{}, object, ""});
    return true;
  }
  bool finish() {
    Document done = std::move(open_.back().document);
    open_.pop_back();
    return put(std::move(done));
  }
  bool refuse(std::string why) {
    error = std::move(why);
    return false;
  }

  std::vector<OpenLevel> open_;
  int values_ = 0;
};

}  // namespace

Result<Document> parse_json(std::string_view text) {
  if (text.size() > kMaxDocumentBytes) return Error(Errc::Corrupt, "JSON: too large");
  Builder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    return Error(Errc::Corrupt, "JSON: " + builder.error);
  }
  return std::move(builder.root);
}

}  // namespace gantry::doctor
