/**
 * Everything that requests in the protocols of other systems need. The first such request loads it. It is one module, because the build divides
 * the code that both such a module and the rest use into a file for each combination of them, and many files make the Worker start slowly.
 */

export { decodeLines } from "./influx/line-protocol.ts";
export { decodeDeviceMonitoring } from "./openwisp/device-monitoring.ts";
export { decodeOtlp, encodeOtlpError, encodeOtlpResponse, OTLP_TYPES, otlpEncoding } from "./otlp/otlp.ts";
export { checkRemoteWriteType, decodeRemoteWrite } from "./prometheus/remote-write.ts";
