"""Names that JavaScript and Node have of their own: what is none of these, and not defined, is a slip."""

from __future__ import annotations

GLOBALS = frozenset(
    " ".join(
        (
            "AbortController AbortSignal AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array",
            "BigUint64Array Blob Boolean Buffer DataView Date Error EvalError Event EventTarget",
            "FinalizationRegistry Float32Array Float64Array FormData Function Headers Infinity Int16Array",
            "Int32Array Int8Array Intl Iterator JSON Map Math MessageChannel NaN Number Object Promise",
            "Proxy RangeError ReferenceError Reflect RegExp Request Response Set SharedArrayBuffer String",
            "Symbol SyntaxError TextDecoder TextEncoder TypeError URIError URL URLSearchParams Uint16Array",
            "Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet WebAssembly __dirname",
            "__filename arguments atob btoa clearImmediate clearInterval clearTimeout console crypto",
            "decodeURI decodeURIComponent define document encodeURI encodeURIComponent escape eval exports",
            "fetch global globalThis isFinite isNaN module navigator parseFloat parseInt performance",
            "process queueMicrotask require self setImmediate setInterval setTimeout structuredClone this",
            "undefined unescape window",
        )
    ).split()
)
MEMBERS = frozenset(
    " ".join(
        (
            "abs add all allSettled any apply assign at bind call catch ceil charAt charCodeAt clear",
            "codePointAt concat constructor copyWithin create defineProperties defineProperty delete",
            "description done endsWith entries every exec fill filter finally find findIndex findLast",
            "findLastIndex flags flat flatMap floor forEach freeze from fromCharCode fromCodePoint",
            "fromEntries get getDate getDay getFullYear getHours getMilliseconds getMinutes getMonth",
            "getOwnPropertyDescriptor getOwnPropertyNames getOwnPropertySymbols getPrototypeOf getSeconds",
            "getTime getTimezoneOffset global groupBy has hasOwn hasOwnProperty hypot ignoreCase includes",
            "index indexOf input is isArray isExtensible isFinite isFrozen isInteger isNaN isSafeInteger",
            "isSealed join keys lastIndex lastIndexOf length localeCompare log log10 log2 map match",
            "matchAll max message min name next normalize now of padEnd padStart parse parseFloat parseInt",
            "pop pow preventExtensions propertyIsEnumerable prototype push race raw reduce reduceRight",
            "reject repeat replace replaceAll resolve return reverse round seal search set setDate",
            "setFullYear setHours setMinutes setMonth setSeconds setTime shift sign size slice some sort",
            "source splice split sqrt stack startsWith stringify substr substring test then throw toFixed",
            "toISOString toJSON toLocaleString toLowerCase toPrecision toReversed toSorted toString",
            "toUpperCase trim trimEnd trimStart trunc unshift value valueOf values with write",
        )
    ).split()
)
