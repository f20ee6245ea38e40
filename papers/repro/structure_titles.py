"""What the figures of the data structures are called, for plots and tables alike."""

THREADS, READS, BUCKETS = "threads", "reads in %", "buckets"
# figure -> (title, x axis)
TITLES = {
    "S-3.12": ("Closed bank, 10 000 accounts, 4 threads, half reads", ""),
    "S-3.13": ("One counter for all threads", THREADS),
    "S-3.14": ("A counter for each core, in one cache line", THREADS),
    "S-3.15": ("A counter and a lock for each core, aligned", THREADS),
    "S-3.16": ("A counter for each core, aligned, one lock for all", THREADS),
    "S-3.17": ("Doubly linked list, aligned items, 2 threads", READS),
    "S-3.18": ("Hash map, a lock for each bucket, 4 threads", BUCKETS),
    "S-3.19": ("Hash map with 1000 buckets, 4 threads", ""),
    "S-C.10": ("Hash map, one lock, 10 000 values, 4 threads", BUCKETS),
    "S-D.5": ("Doubly linked list, unaligned items, 4 threads", READS),
    "S-D.6": ("Doubly linked list, aligned items, 4 threads", READS),
}
BARS = {"S-3.12": {0: ""}, "S-3.17": {}, "S-3.18": {}, "S-3.19": {0: "a lock for each bucket", 1: "one lock for all"}}
