"""The pages: Streamlit and Plotly live here and nowhere else. Data comes from the HTTP API only."""
