// SPDX-License-Identifier: Apache-2.0
//
// The -q report as a table: which lines it has, in which order, under which label in text and which
// element in XML. One table serves both forms.
#pragma once

#include "sim/nvidia-smi/readings.hpp"
#include "sim/nvidia-smi/report_writer.hpp"

#include <stdint.h>

namespace smi {

/// The choices of -d.
inline constexpr uint32_t kMemory = 1U << 0;
inline constexpr uint32_t kUtilization = 1U << 1;
inline constexpr uint32_t kEcc = 1U << 2;
inline constexpr uint32_t kTemperature = 1U << 3;
inline constexpr uint32_t kPower = 1U << 4;
inline constexpr uint32_t kClock = 1U << 5;
inline constexpr uint32_t kCompute = 1U << 6;
inline constexpr uint32_t kPids = 1U << 7;
inline constexpr uint32_t kPerformance = 1U << 8;
inline constexpr uint32_t kSupportedClocks = 1U << 9;
inline constexpr uint32_t kPageRetirement = 1U << 10;
inline constexpr uint32_t kAccounting = 1U << 11;
inline constexpr uint32_t kEncoderStats = 1U << 12;
inline constexpr uint32_t kTargetTemperature = 1U << 13;
inline constexpr uint32_t kVoltage = 1U << 14;
inline constexpr uint32_t kFbcStats = 1U << 15;
inline constexpr uint32_t kRowRemapper = 1U << 16;
inline constexpr uint32_t kGspFirmware = 1U << 17;
inline constexpr uint32_t kPowerSmoothing = 1U << 18;
inline constexpr uint32_t kPowerProfiles = 1U << 19;

enum class Style : uint8_t { Plain, DeeperInText, BareHexInXml, OnlySelected };

// / A part of the report that is not a fixed set of lines (processes, MIG devices, clock lists).
using Part = void (*)(ReportWriter& writer, const Gpu& gpu, bool selected);

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order a line is written
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
  Style style = Style::Plain;
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
