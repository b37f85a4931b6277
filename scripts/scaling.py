#!/usr/bin/env python3
"""A model of weak scaling: what a training step costs on N GPUs where ranks send as distributed/ does, and as a ring does.

    time of an all-reduce of B bytes = messages x latency + 2 (N - 1) / N x B / bandwidth

Direct exchange (distributed/mpi.cpp): each rank sends, for each bucket, N - 1 announcements, N - 1 blocks to be added and N - 1 sums. They are posted
one behind the other and fly together, so a message costs what posting it costs. Tensors of a GPU are
sent behind the backward. docs/distributed.md shows what
this prints; none of it was measured on GPUs.
"""

GB = 1e9

def bucket(n):
    """Bytes, on n ranks: GradientSum::bucket_for (training/steps/gradient_sum.h)."""
    return min(max(n << 18, 4 << 20), 25 << 20)


# The source of each constant.
GPT2_BYTES = 124.5e6 * 4      # gradients of f32, of 124.5 million parameters (GPT-2, padded vocabulary)
GPT2_STEP = 43.24e-3          # s, fastest step, 32 x 1024 tokens, bf16, H100: docs/gpu.md, "Launches, bytes and operations of a step"
NIC = 46 * GB                 # bytes/s, a 400 Gbit/s NIC with NCCL, 46 to 48: github.com/NVIDIA/nccl-tests/issues/290
HOST = 22.7 * GB              # bytes/s of memcpy on our 2 cores: benchmarks/results; a server's host may be faster
PASSES = 3                    # of all bytes over the host's memory, at least: from the GPU, the sum, to the GPU
POST = 1e-6                   # s to post a message and to see its end: an assumption, not measured
HCA = 25 * GB                 # bytes/s: 200 Gbit/s, eight of them in a node of 8 A100: 2104.04473, section 5


def all_reduce(n, size, bandwidth, buckets=1):
    """Seconds of messages and of bytes, of sums over n ranks."""
    return buckets * 3 * (n - 1) * POST, 2 * (n - 1) / n * size / bandwidth


def main():
    print("| GPUs | messages of a rank | messages, ms | bytes, ms | host, ms | step, ms | efficiency | by NCCL |\n|" + "---|" * 8)
    for n in (1, 8, 16, 64, 256, 1024, 4096):
        buckets = -(-GPT2_BYTES // bucket(n))
        messages, sending = all_reduce(n, GPT2_BYTES, NIC, buckets)
        host = PASSES * GPT2_BYTES / HOST if n > 1 else 0
        network = GPT2_STEP + messages + sending
        print(f"| {n} | {3 * (n - 1) * buckets:.0f} | {1e3 * messages:.1f} | {1e3 * sending:.1f} | {1e3 * host:.0f} | "
              f"{1e3 * (network + host):.0f} | {100 * GPT2_STEP / (network + host):.0f} % | {100 * GPT2_STEP / network:.0f} % |")
    print(f"\nMessages take as long as bytes at {2 / 3 * bucket(4096) / NIC / POST:.0f} ranks.")

    # README.md and images/scaling-dp.png, cases.png of github.com/NVIDIA/Megatron-LM at commit 1930198, in ms.
    alone, published = 1076, 1153
    for what, bandwidth in (("a NIC for each GPU's messages", HCA), ("rings through all eight NICs of a node", 8 * HCA)):
        _, sending = all_reduce(128, 1.16e9 * 2, bandwidth)  # gradients of f16
        step = alone + 1e3 * sending
        print(f"Megatron-LM, 1.16 billion parameters on 128 A100, {what}: {step:.0f} ms, {100 * alone / step:.1f} %; "
              f"published {published} ms, {100 * alone / published:.1f} %.")


if __name__ == "__main__":
    main()
