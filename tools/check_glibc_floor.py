#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_glibc_floor.py FILE VERSION [--no-libstdc++]: fails if FILE needs a glibc symbol newer than VERSION.

Reads the version needs from the ELF file itself, so it works without binutils. Prints the versions
that are too new and the symbols that need them."""
import re
import struct
import sys

DT_STRTAB, DT_SYMTAB, DT_VERSYM, DT_VERNEED, DT_VERNEEDNUM = 5, 6, 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
PT_LOAD, PT_DYNAMIC = 1, 2


class Elf:
    def __init__(self, data: bytes):
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a little-endian 64-bit ELF file")
        self.data = data
        phoff, = struct.unpack_from("<Q", data, 32)
        phentsize, phnum = struct.unpack_from("<HH", data, 54)
        self.loads, dynamic = [], None
        for i in range(phnum):
            kind, _, offset, vaddr, _, filesz = struct.unpack_from("<IIQQQQ", data, phoff + i * phentsize)
            if kind == PT_LOAD:
                self.loads.append((vaddr, offset, filesz))
            elif kind == PT_DYNAMIC:
                dynamic = (offset, filesz)
        self.tags = {}
        if dynamic:
            for at in range(dynamic[0], dynamic[0] + dynamic[1], 16):
                tag, value = struct.unpack_from("<qQ", data, at)
                if tag == 0:
                    break
                self.tags[tag & 0xFFFFFFFF] = value

    def offset(self, vaddr: int) -> int:
        for start, offset, size in self.loads:
            if start <= vaddr < start + size:
                return vaddr - start + offset
        raise ValueError(f"address {vaddr:#x} is in no segment")

    def text(self, index: int) -> str:
        at = self.offset(self.tags[DT_STRTAB]) + index
        return self.data[at:self.data.index(b"\0", at)].decode()

    def needs(self) -> dict[int, str]:
        """Version index -> name, e.g. 2 -> GLIBC_2.14."""
        found = {}
        if DT_VERNEED not in self.tags:
            return found
        at = self.offset(self.tags[DT_VERNEED])
        for _ in range(self.tags[DT_VERNEEDNUM]):
            _, count, _, aux, following = struct.unpack_from("<HHIII", self.data, at)
            entry = at + aux
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", self.data, entry)
                found[index] = self.text(name)
                entry += step
            at += following
        return found

    def symbols(self) -> list[tuple[str, int]]:
        """Undefined dynamic symbols with their version index."""
        if DT_VERSYM not in self.tags or DT_SYMTAB not in self.tags:
            return []
        symtab, versym = self.offset(self.tags[DT_SYMTAB]), self.offset(self.tags[DT_VERSYM])
        # The string table follows the symbol table in every linker's output.
        count = (self.offset(self.tags[DT_STRTAB]) - symtab) // 24
        rows = []
        for i in range(1, count):
            name, _, _, section = struct.unpack_from("<IBBH", self.data, symtab + i * 24)
            version, = struct.unpack_from("<H", self.data, versym + i * 2)
            if section == 0:
                rows.append((self.text(name), version & 0x7FFF))
        return rows


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def main() -> int:
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["--no-libstdc++"]):
        print(__doc__, file=sys.stderr)
        return 2
    file, floor = sys.argv[1], number(sys.argv[2])
    with open(file, "rb") as handle:
        elf = Elf(handle.read())
    needs = elf.needs()
    newer = {i: v for i, v in needs.items()
             if (m := re.fullmatch(r"GLIBC_([0-9.]+)", v)) and number(m[1]) > floor}
    unwanted = r"GLIBC_PRIVATE|GLIBC_ABI" + (r"|GLIBCXX|CXXABI" if sys.argv[3:] else "")
    odd = {v for v in needs.values() if re.match(unwanted, v)}
    for name, version in elf.symbols():
        if version in newer:
            print(f"{file}: {name} needs {newer[version]}, the floor is {sys.argv[2]}")
    for version in sorted(odd):
        print(f"{file}: needs {version}")
    if newer or odd:
        return 1
    best = max((number(m[1]) for v in needs.values() if (m := re.fullmatch(r"GLIBC_([0-9.]+)", v))), default=())
    print(f"{file}: needs glibc {'.'.join(map(str, best)) or 'nothing'}, floor {sys.argv[2]}")
    return 0


sys.exit(main())
