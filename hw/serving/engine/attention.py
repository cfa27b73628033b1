"""Attention of a flat batch over the cache: every request's own keys, which lie in a row of the arena.

PyTorch's flash attention (aten::_flash_attention_forward) takes where each request's keys begin and how many there are as
tensors, so that one CUDA graph serves every context. It takes no table of blocks; hence extents. Rows that decode come
first, one query each (the kernel splits long contexts); prompts' chunks follow in a second call."""

import torch


class Attention:
    """`decodes` rows have one query; `chunks` are (queries) of the rest. `begins`, `used`: of all requests, in int32."""

    def __init__(self, decodes, queries, begins, used, chunk_begins, max_queries, max_keys):
        self.decodes, self.queries, self.begins, self.used = decodes, queries, begins, used
        self.chunk_begins, self.max_queries, self.max_keys = chunk_begins, max_queries, max_keys

    def __call__(self, q, keys, values):
        call = flash if q.is_cuda else plain
        n, parts = self.decodes, []
        if n:
            parts.append(call(q[:n], keys, values, self.queries[:n + 1], self.begins[:n + 1], self.used[:n], 1, self.max_keys))
        if n < q.shape[0]:
            parts.append(call(q[n:], keys, values, self.chunk_begins, self.begins[n:], self.used[n:], self.max_queries,
                              self.max_keys))
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def flash(q, keys, values, queries, begins, used, max_queries, max_keys):
    return torch.ops.aten._flash_attention_forward(q, keys, values, queries, begins, max_queries, max_keys, 0.0,
                                                   max_queries > 1, False, seqused_k=used)[0]


def plain(q, keys, values, queries, begins, used, _max_queries, _max_keys):
    """The same request by request: where there is no GPU."""
    out = torch.empty_like(q)
    for i, (first, end) in enumerate(zip(queries.tolist(), queries.tolist()[1:])):
        begin, count = begins[i].item(), used[i].item()
        k, v = (x[begin:begin + count].repeat_interleave(q.shape[1] // x.shape[1], 1).transpose(0, 1) for x in (keys, values))
        mask = torch.ones(end - first, count, dtype=torch.bool).tril(count - (end - first))
        out[first:end] = torch.nn.functional.scaled_dot_product_attention(
            q[first:end].transpose(0, 1), k, v, attn_mask=mask).transpose(0, 1)
    return out
