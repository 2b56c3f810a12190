"""The data path: list what a channel names, read it from files or S3, and serve it as files, a stream or a mount.

It knows requests (`channel_source`) and stores, but no platform and no job: platforms import it, it imports none of
them. It needs Linux where it serves pipes and mounts. Nothing here is public.

What to read:
    channel_source: The source of a job's channel, as the data path reads it.
    listing: List the objects or pieces that a host gets of a channel in an epoch.
    manifests: Parse manifests and the lines of augmented manifests, a chunk at a time.
    augmented_manifests: Parse one line of an augmented manifest into pieces.
    sharding: Shuffle records, and divide them among the hosts.

Where to read from:
    object_store: The `ObjectStore` protocol and its values.
    stores: Open the store of a URI.
    s3_store: Amazon S3, with and without boto3. **Failed downloads are retried here** (`S3Store._retry`).
    file_store: Files of this machine.
    integrity: Verify bytes by checksums and ETags.
    file_uris: Parse ``file://`` URIs.

How it is served:
    staging: File mode: download to files.
    layout: The directory tree that a channel's objects are in, for files and for mounts.
    cancellation: Cancel what threads read ahead of a consumer that has gone.
    prefetch: Prefetch a stream with threads, in order.
    large_objects: Stream large objects over one connection each while that is fast.
    framing, recordio: Decompress a stream, and wrap its pieces in RecordIO.
    pipes: Pipe mode: write a stream into FIFOs, one an epoch.
    fast_file: FastFile mode: a channel as a tree of files for a FUSE mount.
    file_prefetch: Prefetch for the open files of such a mount.
    fuse_protocol, fuse_server: The kernel's FUSE protocol, and its server.
    mounts: Mount and unmount, for FUSE and for read-only directories.
    file_copy, regular_files: Copy and open files that others wrote.
    durable: Replace files so that they survive a power cut.
    shared_counters: Counters that a forked child writes and its parent reads.
"""
