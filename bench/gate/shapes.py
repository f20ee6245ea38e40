"""Names for what the gate and `./dev bench --against` fill a map with, and the flags of `elidex bench` that they stand for."""

WORD_LIST = "/usr/share/dict/american-english-huge"
FLAGS = {
    "20k keys": ("--keys", "20K"),
    "300k keys": ("--keys", "300K"),
    "1M random u64": ("--keys", "1M"),
    "1M, Zipf 0.99": ("--keys", "1M", "--dist", "zipf:0.99"),
    "1M, scans of 100": ("--keys", "1M"),
    "10M random u64": ("--keys", "10M"),
    "10M, Zipf 0.99": ("--keys", "10M", "--dist", "zipf:0.99"),
    "10M, Zipf 0.99 scrambled": ("--keys", "10M", "--dist", "zipf:0.99:scrambled"),
    "10M, Zipf 0.99, 8 threads": ("--keys", "10M", "--dist", "zipf:0.99", "--oversubscribe"),
    "10M ascending, one end": ("--keys", "10M", "--order", "interleaved"),
    "10M ascending, own ranges": ("--keys", "10M", "--order", "ascending"),
    "10M, scans of 100": ("--keys", "10M"),
    "words": ("--key-file", WORD_LIST),
    "1M URLs": ("--key-type", "string", "--keys", "1M"),
    "1 warehouse": ("--warehouses", "1"),
    "2 warehouses": ("--warehouses", "2"),
}


def flags_of(what):
    return list(FLAGS[what])
