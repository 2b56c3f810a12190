import argparse
import os
import socket

from tensorflow.data.experimental.service import DispatcherConfig, DispatchServer, WorkerConfig, WorkerServer


def wait_for_shutdown_signal():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.bind(("", 16000))
    s.listen(1)
    print("Awaiting shutdown signal")
    conn, _ = s.accept()
    conn.close()
    s.close()


def create_worker(index, dispatcher_host, current_host):
    port = 6001 + index
    config = WorkerConfig(
        port=port, dispatcher_address=f"{dispatcher_host}:6000", worker_address=f"{current_host}:{port}"
    )
    return WorkerServer(config)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--dispatcher_host", type=str)
    parser.add_argument("--current_host", type=str, default=os.environ["SM_CURRENT_HOST"])
    parser.add_argument("--num_of_data_workers", type=int)
    args, _ = parser.parse_known_args()
    server = DispatchServer(DispatcherConfig(port=6000))
    workers = [create_worker(each, args.dispatcher_host, args.current_host) for each in range(args.num_of_data_workers)]
    wait_for_shutdown_signal()
    for worker in workers:
        worker._stop()
    server._stop()
