#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""normalise.py [FILE]: nvidia-smi output with clock, load and masked identities made equal.

What stays is everything a script reads: layout, labels, units, modes, versions, limits. Used by the golden
tests, and by hand to compare with a real machine:  nvidia-smi -q | normalise.py"""
import re
import sys

# Labels of -q whose value is a reading of the moment, in the section named (None: anywhere).
TEXT_LOAD = {
    (None, "Timestamp"), (None, "Tx Throughput"), (None, "Rx Throughput"),
    ("Utilization", "GPU"), ("Utilization", "Gpu"), ("Utilization", "Memory"),
    ("Temperature", "GPU Current Temp"), ("Temperature", "GPU T.Limit Temp"), ("Temperature", "Memory Current Temp"),
    ("GPU Power Readings", "Average Power Draw"), ("GPU Power Readings", "Instantaneous Power Draw"),
    ("GPU Memory Power Readings", "Average Power Draw"), ("Power Readings", "Power Draw"),
    ("Clocks", "Graphics"), ("Clocks", "SM"), ("Clocks", "Memory"), ("Clocks", "Video"),
    ("Clocks Event Reasons", "Idle"), ("Clocks Throttle Reasons", "Idle"),
}
# Recorded with some of them replaced by [masked].
TEXT_IDENTITY = {"Serial Number", "GPU UUID", "GPU PDI", "Board Part Number", "GPU Part Number",
                 "Chassis Serial Number"}
XML_LOAD = {
    "timestamp", "tx_util", "rx_util", "gpu_util", "memory_util", "gpu_temp", "gpu_temp_tlimit",
    "memory_temp", "clocks_event_reason_gpu_idle", "clocks_throttle_reason_gpu_idle",
    "gpu_power_readings/average_power_draw", "gpu_power_readings/instant_power_draw",
    "gpu_memory_power_readings/average_power_draw", "power_readings/power_draw",
    "clocks/graphics_clock", "clocks/sm_clock", "clocks/mem_clock", "clocks/video_clock",
}
XML_IDENTITY = {"serial", "uuid", "pdi", "board_part_number", "gpu_part_number", "chassis_serial_number"}

CLOCK = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}( *)$")
# The line of the table with fan, temperature, power, memory and utilisation.
LOAD_ROW = re.compile(r"^(\| (?:N/A|[ \d]{2}%) +)( *\d+C|N/A)( +P\d+ +)( *\d+W|N/A)( / +\d+W| /  N/A)(.*?)( +\d+%)(.*)$")
UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def blank(text: str) -> str:
    """As wide as before, so that a shifted column still shows."""
    return re.sub(r"\d", "#", text)


def table_line(line: str) -> str:
    if CLOCK.match(line):
        return "CLOCK" + CLOCK.match(line)[1]
    found = LOAD_ROW.match(line)
    if found:
        fan, temperature, state, power, limit, memory, used, rest = found.groups()
        width = len(temperature) + len(state) + len(power)
        return blank(fan) + " LOAD".ljust(width) + limit + memory + re.sub(r"\d+%", "#%", used).rjust(8) + rest
    return UUID.sub(r"\1-UUID", line)


def text(lines: list[str]) -> list[str]:
    out, sections = [], {}
    for line in lines:
        found = re.match(r"^( *)(\S.*?) *: (.*)$", line)
        indent = len(line) - len(line.lstrip())
        if not found or line.startswith(("|", "+", "GPU ")):
            sections = {depth: name for depth, name in sections.items() if depth < indent}
            sections[indent] = line.strip()
            out.append(table_line(line))
            continue
        label, value = found[2], found[3]
        section = sections.get(indent - 4, "")
        column = line.index(": " + value)
        if (None, label) in TEXT_LOAD or (section, label) in TEXT_LOAD:
            value = "LOAD" if value != "N/A" else value
        elif label in TEXT_IDENTITY:
            value = "IDENTITY"
        out.append(line[:column] + ": " + value)
    return out


def xml(lines: list[str]) -> list[str]:
    out, path = [], []
    for line in lines:
        opened = re.match(r"^\t*<(\w+)(?: [^>]*)?>$", line)
        closed = re.match(r"^\t*</(\w+)>$", line)
        leaf = re.match(r"^(\t*)<(\w+)>(.*)</\2>$", line)
        if leaf:
            parent = path[-1] if path else ""
            value = leaf[3]
            if leaf[2] in XML_LOAD or f"{parent}/{leaf[2]}" in XML_LOAD:
                value = "LOAD" if value != "N/A" else value
            elif leaf[2] in XML_IDENTITY:
                value = "IDENTITY"
            line = f"{leaf[1]}<{leaf[2]}>{value}</{leaf[2]}>"
        elif opened:
            path.append(opened[1])
        elif closed and path:
            path.pop()
        out.append(line)
    return out


def normalise(output: str) -> str:
    lines = output.split("\n")
    form = xml if output.startswith("<?xml") else text
    return "\n".join(form(lines))


if __name__ == "__main__":
    source = open(sys.argv[1], encoding="utf-8") if len(sys.argv) > 1 else sys.stdin
    sys.stdout.write(normalise(source.read()))
