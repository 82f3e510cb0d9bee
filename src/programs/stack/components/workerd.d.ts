/** The package has no types. In ESM, its CommonJS export is one level deeper: `default.default` is the path of the binary. */
declare module "workerd" {
  const workerd: { default: string };
  export default workerd;
}
