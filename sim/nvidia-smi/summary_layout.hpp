// SPDX-License-Identifier: Apache-2.0
//
// The shapes the summary table has had, by driver version. Rules and headings are kept as they
// appear; rows are printf formats over texts.
#pragma once

namespace smi {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order the lines appear
struct SummaryLayout {
  unsigned since;            // driver major * 1000 + minor
  const char* edge;          // full-width rule
  const char* version;       // formats: this program, driver, CUDA (the last may be unused)
  const char* version_rule;  // below the version line
  const char* head[3];       // the third may be null
  const char* head_rule;
  const char* gpu_rule;   // between GPUs and at the end
  const char* gpu[3];     // formats: index name persistence bus-id display ecc; fan temperature
                          // state power cap used total utilisation compute; mig (may be null)
  unsigned name_width;    // longer names end in "..."
  const char* gap;        // line between the tables
  const char* mig_title;  // "" when the driver knows no MIG
  const char* mig_rule;
  const char* mig_head[3];
  const char* mig_head_rule;
  const char*
      mig[2];  // formats: gpu gi ci dev used total sm ecc ce enc dec ofa jpg; bar1 used total
  const char* mig_none;
  const char* process_head[3];  // the third may be null
  const char* process_rule;
  const char* process;  // formats: gpu, gi+ci text (unused before MIG), pid, type, name, memory
  unsigned process_name_width;
  const char* process_none;
};

const SummaryLayout& layout_for(unsigned driver_major, unsigned driver_minor);

}  // namespace smi
