/** The e-mail address stays as one goes from one way in to another: whoever mistypes a password need not type both again. */
export interface WayProps {
  username: string;
  onUsername(username: string): void;
}
