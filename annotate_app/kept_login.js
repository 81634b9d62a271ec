// Keeps the lead's login in this window's session storage, and gives it back after a reload.

export default function ({ data, setTriggerValue }) {
  const { name, login, forget, tell } = data;
  if (forget) {
    sessionStorage.removeItem(name);
    if (tell) setTriggerValue("forgotten", true);
  } else if (login) sessionStorage.setItem(name, login);
  else {
    const kept = sessionStorage.getItem(name);
    if (kept) setTriggerValue("kept", kept);
  }
}
