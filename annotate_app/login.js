// Keeps the lead's login in this window's session storage, and gives it back after a reload.

export default function ({ data, setTriggerValue }) {
  const { shelf, login, forget } = data;
  if (forget) sessionStorage.removeItem(shelf);
  else if (login) sessionStorage.setItem(shelf, login);
  else {
    const kept = sessionStorage.getItem(shelf);
    if (kept) setTriggerValue("kept", kept);
  }
}
