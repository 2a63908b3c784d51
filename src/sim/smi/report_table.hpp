// SPDX-License-Identifier: Apache-2.0
//
// The -q report as a table: which lines it has, in which order, under which label in text and which
// element in XML. One table serves both forms.
#pragma once

#include "sim/smi/readings.hpp"
#include "sim/smi/report_writer.hpp"

#include <stdint.h>

namespace smi {

/// The choices of -d.
enum Display : uint32_t {
  kMemory = 1U << 0,
  kUtilization = 1U << 1,
  kEcc = 1U << 2,
  kTemperature = 1U << 3,
  kPower = 1U << 4,
  kClock = 1U << 5,
  kCompute = 1U << 6,
  kPids = 1U << 7,
  kPerformance = 1U << 8,
  kSupportedClocks = 1U << 9,
  kPageRetirement = 1U << 10,
  kAccounting = 1U << 11,
  kEncoderStats = 1U << 12,
  kTargetTemperature = 1U << 13,
  kVoltage = 1U << 14,
  kFbcStats = 1U << 15,
  kRowRemapper = 1U << 16,
  kGspFirmware = 1U << 17,
  kPowerSmoothing = 1U << 18,
  kPowerProfiles = 1U << 19,
};

/// A part of the report that is no fixed set of lines (processes, MIG devices, clock lists).
using Part = void (*)(ReportWriter& writer, const Gpu& gpu, bool selected);

struct Row {
  unsigned depth = 0;
  const char* label = nullptr;  // null: not in text
  const char* tag = nullptr;    // null: not in XML
  Read read = nullptr;          // null: a heading
  Arg arg = {};
  uint32_t display = 0;  // of a line at depth 1: the -d choices that show it
  unsigned since = 0;    // driver major
  unsigned until = 9999;
  bool (*when)(const Gpu& gpu) = nullptr;
  Part part = nullptr;
  enum : uint8_t { kPlain, kDeeperInText, kBareHexInXml, kOnlySelected } style = kPlain;
};

struct Table {
  const Row* rows;
  size_t count;
};

Table report_table();

// report_parts.cpp
void show_mig_part(ReportWriter& writer, const Gpu& gpu, bool selected);
void show_processes_part(ReportWriter& writer, const Gpu& gpu, bool selected);
void show_accounted_part(ReportWriter& writer, const Gpu& gpu, bool selected);
void show_supported_clocks_part(ReportWriter& writer, const Gpu& gpu, bool selected);

}  // namespace smi
