/** Made when the page is built (vite.config.ts): towns as JSON, largest first. */
declare module "virtual:towns" {
  const json: string;
  export default json;
}
