#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// view_inputs.js REPRISE FOLDER EVENTS RANKS: a run for view_page.js, as .rpt: on each rank steps of 50 launches, their kernels on two streams, and an
// all-reduce in which the ranks meet.
"use strict";
const { spawnSync } = require("child_process");
const fs = require("fs"), path = require("path");

const [reprise, folder, events, ranks] = [process.argv[2], process.argv[3], Number(process.argv[4]), Number(process.argv[5])];
const NAMES = ["gemm_bf16_128x128", "layer_norm_forward", "elementwise_add", "softmax_forward", "attention_forward"];

function write(file, rank, steps) {
  const to = fs.openSync(file, "w"), hosts = Math.ceil(ranks / 8);
  let text = `{"hostname":"node${Math.floor(rank / 8) % hosts}","distributedInfo":{"backend":"nccl","rank":${rank},"world_size":${ranks}},"traceEvents":[`, id = 1;
  for (let s = 0; s < steps; s++) {
    const begin = 1000 + s * 1200, late = rank === 5 ? 40 : rank % 3;
    text += `${s ? "," : ""}{"ph":"X","cat":"user_annotation","name":"ProfilerStep#${s}","pid":1,"tid":1,"ts":${begin},"dur":1150}`;
    for (let k = 0; k < 50; k++, id++) {
      const at = begin + 10 + k * 16;
      text += `,{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":${at},"dur":6,"args":{"correlation":${id}}},` +
        `{"ph":"X","cat":"kernel","name":"${NAMES[k % 5]}","pid":0,"tid":${k % 2 ? 7 : 9},"ts":${at + 20 + late},"dur":${8 + k % 6},"args":{"correlation":${id},"stream":${k % 2 ? 7 : 9},"device":0}}`;
    }
    text += `,{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":20,"ts":${begin + 850 + late},"dur":${200 - late},"args":{"stream":20,"device":0,` +
      `"Collective name":"allreduce","Process Group Name":"0","In msg nelems":4096,"Group size":${ranks},"dtype":"Float","Seq":${s}}}`;
    if (text.length > 1 << 20) { fs.writeSync(to, text); text = ""; }
  }
  fs.writeSync(to, text + "]}");
  fs.closeSync(to);
}

fs.mkdirSync(folder, { recursive: true });
const steps = Math.max(1, Math.round(events / ranks / 102));
for (let rank = 0; rank < ranks; rank++) {
  const json = path.join(folder, `rank${rank}.json`), made = () => spawnSync(reprise, ["convert", json, "--quiet", "-o", json.replace(/json$/, "rpt")], { encoding: "utf8" });
  write(json, rank, steps);
  const code = made();
  if (code.status !== 0) { console.error(code.stderr); process.exit(1); }
  fs.unlinkSync(json);
}
