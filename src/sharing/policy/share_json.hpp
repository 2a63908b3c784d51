// SPDX-License-Identifier: Apache-2.0
// Shares and changes as parts of other JSON: on the daemon's socket and in its records. Programs of
// the last version read and write the same keys and words.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "sharing/policy/share.hpp"

namespace gantry::policy {

void write(json::Writer& out, const Share& share);
// As for the text in share.hpp.
Result<Share> share_from_json(json::Value value);

// The members of a share in what commands print, with one spelling of keys.
void write_document_members(json::Writer& out, const Share& share);

void write(json::Writer& out, const ShareChanges& changes);  // only those that are given
// Invalid if a key is unknown or a value is wrong.
Result<ShareChanges> changes_from_json(json::Value object);

}  // namespace gantry::policy
