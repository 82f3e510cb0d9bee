/** The package has no types. As CommonJS under ESM, its default export sits one level down: the path of the binary. */
declare module "workerd" {
  const workerd: { default: string };
  export default workerd;
}
