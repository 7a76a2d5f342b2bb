"""Ways to damage a file: blindly, byte by byte, or knowing what it is."""

import contextlib
import io
import json
import re

import numpy as np

TOKENS = [
    "-1", "0", "1", "7", "255", "65536", "536870912", "2147483648", "9223372036854775807",
    "99999999999999999999", "1e308", "1e999", "-0.0", "nan", "inf", "-inf", "true", "false", "null",
    '""', '"x"', "[]", "{}", "[[]]", "=cmd()", "\x1b[2J", "\x00", "é", ",", ";", '"', "'", "\n",
    "0x7fffffff", "1970-01-01", "9999-12-31T23:59:59Z", "0001-01-01", "../../etc/passwd", "<a>",
    "</gpx>", "&amp;", "&x;", "[" * 5_000,
]  # fmt: skip
NUMBERS = [-(2**63), -(2**31), -129, -1, 0, 1, 2, 7, 127, 128, 2**15, 2**29, 2**31, 2**63 - 1]
FLOATS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e-320, 1e308, -1e308, 0.5, 2.0]
LEAVES = [
    None, True, False, -1, 0, 1, 3, 2**31, 2**70, -(10**30), 0.5, -0.5, 1e308, float("nan"), "",
    "x", "PCG64", "MT19937", "__class__", "DistanceDependent", [], {}, [1, 2], {"class": "Mixing"},
    {"array": "states"}, {"float": "nan"}, {"opaque": "os.system"}, 10**400,
]  # fmt: skip


def damage_bytes(data, rng):
    """Flip, overwrite, cut out, repeat, insert or cut off some bytes."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        if not data:
            break
        at = int(rng.integers(len(data)))
        length = int(min(2 ** rng.integers(0, 9), len(data) - at))
        match int(rng.integers(6)):
            case 0:
                data[at] ^= 1 << int(rng.integers(8))
            case 1:
                data[at : at + length] = rng.bytes(length)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + length]
            case 4:
                fill = [0x00, 0xFF, 0x7F, 0x80][int(rng.integers(4))]
                data[at : at + min(length, 8)] = bytes([fill]) * min(length, 8)
            case 5:
                del data[at:]
    return bytes(data)


def damage_text(data, rng):
    """Change, repeat, drop or mix the words of a text."""
    words = re.findall(r"[\w.+-]+|\s+|.", data.decode(), flags=re.DOTALL)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(words)))
        length = int(rng.integers(1, 12))
        match int(rng.integers(5)):
            case 0 | 1:
                words[at] = TOKENS[int(rng.integers(len(TOKENS)))]
            case 2:
                del words[at : at + length]
            case 3:
                words[at:at] = words[at : at + length] * int(rng.integers(1, 4))
            case 4:
                other = int(rng.integers(len(words)))
                words[at], words[other] = words[other], words[at]
        words = words or [""]
    return "".join(words).encode("utf-8", "surrogateescape")


def damage_json(data, rng):
    """Put something else at some place of a JSON value, or drop it, or bury it."""
    value = json.loads(data)
    if rng.random() < 0.02:
        return b"[" * 100_000 + data + b"]" * 100_000
    for _ in range(rng.integers(1, 3)):
        holders = [(value, key) for key in _keys(value)]
        places = []
        while holders:
            holder, key = holders.pop()
            places.append((holder, key))
            holders += [(holder[key], inner) for inner in _keys(holder[key])]
        holder, key = places[int(rng.integers(len(places)))]
        match int(rng.integers(5)):
            case 0:
                del holder[key]
            case 1:
                other = places[int(rng.integers(len(places)))]
                holder[key] = json.loads(json.dumps(other[0].get(other[1], 0)
                                         if isinstance(other[0], dict) else 0))  # fmt: skip
            case 2:
                buried = holder[key]
                for _ in range(60):
                    buried = [buried]
                holder[key] = buried
            case _:
                holder[key] = LEAVES[int(rng.integers(len(LEAVES)))]
    return json.dumps(value).encode()


def _keys(value):
    if isinstance(value, dict):
        return list(value)
    return list(range(len(value))) if isinstance(value, list) else []


def damage_arrays(data, rng):
    """Change what the arrays of an archive hold; the archive itself stays sound."""
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for _ in range(rng.integers(1, 3)):
        names = list(arrays)
        if not names:
            break
        name = names[int(rng.integers(len(names)))]
        array = arrays[name]
        if array.dtype.kind == "U" and array.shape == () and str(array).startswith("{"):
            arrays[name] = np.array(damage_json(str(array).encode(), rng).decode()[: 1 << 20])
            continue
        match int(rng.integers(10)):
            case 0:
                del arrays[name]
            case 1:
                arrays[name] = array.reshape(-1)[: int(rng.integers(array.size + 1))]
            case 2:
                arrays[name] = np.concatenate([array.reshape(-1)] * 2)
            case 3:
                kinds = [np.int8, np.int64, np.uint64, np.float32, np.float64, bool, "U3", ">i4"]
                with np.errstate(all="ignore"), contextlib.suppress(ValueError):  # text
                    arrays[name] = array.astype(kinds[int(rng.integers(len(kinds)))])
            case 4:
                arrays[name] = arrays[names[int(rng.integers(len(names)))]]
            case 5:
                arrays[name] = np.asfortranarray(np.swapaxes(array, 0, -1)) if array.ndim else array
            case 6:
                arrays[f"{name}.more"] = array
            case _:
                arrays[name] = _with_other_values(array, rng)
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _with_other_values(array, rng):
    changed = np.array(array)
    if not changed.size:
        return changed
    flat = changed.reshape(-1)
    at = rng.integers(len(flat), size=int(rng.integers(1, 4)))
    if array.dtype.kind == "f":
        flat[at] = rng.choice(FLOATS, size=len(at))
    elif array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        drawn = NUMBERS[int(rng.integers(len(NUMBERS)))]
        flat[at] = min(max(drawn, limits.min), limits.max)
    elif array.dtype.kind == "U":
        flat[at] = "\x1b[2J"[: max(1, array.dtype.itemsize // 4)]
    return changed
